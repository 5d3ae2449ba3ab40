//! Measures of programs from a recording, for machines that cannot count them.
//!
//! A recording is the report of a run on a machine with counters, or a file written by hand; only
//! `programs` is read from it:
//!
//! ```json
//! {"programs": [
//!   {"name": "canneal", "llc_miss_rate": 0.61, "bus_occupancy": 0.22, "bus_queue_time": 0.35,
//!    "instructions_per_cpu_s": 0.6e9},
//!   {"name": "swaptions", "llc_miss_rate": 0.02, "bus_occupancy": 0.01, "bus_queue_time": 0.0}
//! ]}
//! ```
//!
//! The shares and a thread's CPU time give counts with the same shares: one cycle per nanosecond and
//! one access to the last-level cache per cycle. They are as good as the recording and know no phases.
//! Instructions that are not counted come from `instructions_per_cpu_s`, or else are one per
//! nanosecond, so that progress is CPU time. The share of runnable time that threads spent on a
//! CPU, which back-off uses, is no substitute: it falls with every core that a program loses, so
//! that every program would seem to scale linearly.
//!
//! Pitfall: progress by CPU time sees programs wait for each other, but not for memory.

use consort_core::{Reading, Sample, Signal, SignalOffers, Tier};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Instructions per CPU time, 1/ns, if no value is given: progress is then CPU time.
const UNKNOWN_RATE: f64 = 1.0;

/// Measures of programs by their names.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedMeasures {
    origin: PathBuf,
    programs: BTreeMap<String, MeasuresRow>,
}

#[derive(Deserialize)]
struct MeasuresFile {
    programs: Vec<MeasuresRow>,
}

/// One program. Other keys of reports are passed over.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct MeasuresRow {
    name: String,
    llc_miss_rate: Option<f64>,
    bus_occupancy: Option<f64>,
    bus_queue_time: Option<f64>,
    instructions_per_cpu_s: Option<f64>,
}

impl MeasuresRow {
    /// The first impossible value: its key, the value, and what would be right.
    fn fault(&self) -> Option<(&'static str, f64, &'static str)> {
        let share = "a number from 0 to 1";
        let amount = "a number from 0";
        let checks = [
            ("llc_miss_rate", self.llc_miss_rate, 1.0, share),
            ("bus_occupancy", self.bus_occupancy, 1.0, share),
            ("bus_queue_time", self.bus_queue_time, f64::MAX, amount),
            (
                "instructions_per_cpu_s",
                self.instructions_per_cpu_s,
                f64::MAX,
                amount,
            ),
        ];
        checks.into_iter().find_map(|(key, value, most, expected)| {
            let value = value.filter(|value| !(0.0..=most).contains(value))?;
            Some((key, value, expected))
        })
    }
}

impl RecordedMeasures {
    /// Reads a recording.
    ///
    /// # Errors
    /// When the file is not there, not of the form, or without measures.
    pub fn read(path: &Path) -> Result<Self, RecordedMeasuresError> {
        let origin = path.to_owned();
        match consort_describe::input::read_text(path) {
            Ok(text) => Self::parse(&text, origin),
            Err(source) => Err(RecordedMeasuresError::Read { origin, source }),
        }
    }

    fn parse(text: &str, origin: PathBuf) -> Result<Self, RecordedMeasuresError> {
        let file: MeasuresFile = match serde_json::from_str(text) {
            Ok(file) => file,
            Err(source) => return Err(RecordedMeasuresError::Malformed { origin, source }),
        };
        let mut programs = BTreeMap::new();
        for row in file.programs {
            // Reports also list programs without measures.
            if row.llc_miss_rate.is_none() && row.bus_occupancy.is_none() {
                continue;
            }
            let name = row.name.clone();
            if let Some((key, value, expected)) = row.fault() {
                return Err(RecordedMeasuresError::Value {
                    origin,
                    name,
                    key,
                    value,
                    expected,
                });
            }
            if programs.insert(name.clone(), row).is_some() {
                return Err(RecordedMeasuresError::Twice { origin, name });
            }
        }
        if programs.is_empty() {
            return Err(RecordedMeasuresError::Empty { origin });
        }
        Ok(Self { origin, programs })
    }

    /// File that the measures come from.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// The signals that the recording gives of every program in it. Cycles and instructions are
    /// estimates.
    pub fn signals(&self) -> Vec<Signal> {
        let all = |has: fn(&MeasuresRow) -> bool| self.programs.values().all(has);
        let llc = all(|row| row.llc_miss_rate.is_some());
        let bus = all(|row| row.bus_occupancy.is_some() && row.bus_queue_time.is_some());
        let llc = llc.then_some([Signal::LlcAccesses, Signal::LlcMisses]);
        let bus = bus.then_some([Signal::BusBusyCycles, Signal::BusQueueCycles]);
        let estimates = [Signal::Cycles, Signal::Instructions];
        let pairs = [Some(estimates), llc, bus];
        pairs.into_iter().flatten().flatten().collect()
    }

    /// Offers signals that the recording gives and the machine does not, in the poorest tier;
    /// returns a sentence about that for the user.
    pub fn offer(&self, offers: &mut SignalOffers) -> String {
        let counted = |signal| offers.tier_of(signal).is_some();
        let missing: Vec<Signal> = self
            .signals()
            .into_iter()
            .filter(|s| !counted(*s))
            .collect();
        missing
            .iter()
            .for_each(|&signal| offers.add(signal, Tier::Proc));
        let names: Vec<&str> = missing.iter().map(|signal| signal.name()).collect();
        format!(
            "not counted here but taken from profile {}, or estimated from it and CPU time: {}",
            self.origin.display(),
            names.join(", ")
        )
    }

    /// Checks that a program is in the recording.
    ///
    /// # Errors
    /// [`RecordedMeasuresError::Missing`], with the programs that are.
    pub fn check(&self, name: &str) -> Result<(), RecordedMeasuresError> {
        if self.programs.contains_key(name) {
            return Ok(());
        }
        let known: Vec<&str> = self.programs.keys().map(String::as_str).collect();
        Err(RecordedMeasuresError::Missing {
            origin: self.origin.clone(),
            name: name.to_owned(),
            known: known.join(", "),
        })
    }

    /// Adds the recorded measures of the program `name` to a sample of one of its threads, in the
    /// poorest tier: values that were counted stay.
    pub(super) fn fill(&self, name: &str, sample: &mut Sample, interval_ns: u64) {
        let Some(row) = self.programs.get(name) else {
            return;
        };
        let cpu_ns = sample.cpu_time_ns();
        let mut set = |signal, value| {
            sample.set(
                signal,
                Reading::fully_counted(value, Tier::Proc, interval_ns),
            );
        };
        let rate = row.instructions_per_cpu_s.map(|per_s| per_s / 1e9);
        set(Signal::Instructions, rate.unwrap_or(UNKNOWN_RATE) * cpu_ns);
        let shares = [
            (Signal::Cycles, Some(1.0)),
            (Signal::LlcAccesses, row.llc_miss_rate.map(|_| 1.0)),
            (Signal::LlcMisses, row.llc_miss_rate),
            (Signal::BusBusyCycles, row.bus_occupancy),
            (Signal::BusQueueCycles, row.bus_queue_time),
        ];
        for (signal, share) in shares {
            if let Some(share) = share {
                set(signal, share * cpu_ns);
            }
        }
    }
}

/// Reason for which a recording cannot be used.
#[derive(Debug, Error)]
pub enum RecordedMeasuresError {
    /// The file cannot be read.
    #[error("cannot read profile {origin}: {source}", origin = origin.display())]
    Read {
        /// The file.
        origin: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The file is not of the form.
    #[error("profile {origin}: {source}", origin = origin.display())]
    Malformed {
        /// The file.
        origin: PathBuf,
        /// The fault and its place.
        source: serde_json::Error,
    },
    /// A value is impossible.
    #[error(
        "profile {origin}: {key} of program '{name}' is {value}; expected {expected}",
        origin = origin.display()
    )]
    Value {
        /// The file.
        origin: PathBuf,
        /// The program.
        name: String,
        /// The key.
        key: &'static str,
        /// The value in the file.
        value: f64,
        /// A description of right values.
        expected: &'static str,
    },
    /// No program in the file has measures.
    #[error(
        "profile {origin}: no program has measures; reports of runs where `consort machine` shows \
         the tier counters have them",
        origin = origin.display()
    )]
    Empty {
        /// The file.
        origin: PathBuf,
    },
    /// A program is in the file twice.
    #[error("profile {origin}: program '{name}' is there twice", origin = origin.display())]
    Twice {
        /// The file.
        origin: PathBuf,
        /// The program.
        name: String,
    },
    /// A program is not in the file.
    #[error("profile {origin} has no program '{name}'; it has {known}", origin = origin.display())]
    Missing {
        /// The file.
        origin: PathBuf,
        /// The program.
        name: String,
        /// The programs that are, separated by commas.
        known: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<RecordedMeasures, RecordedMeasuresError> {
        RecordedMeasures::parse(text, PathBuf::from("p.json"))
    }

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    const TWO: &str = r#"{"tier": "counters", "programs": [
        {"name": "a", "pid": 7, "llc_miss_rate": 0.5, "bus_occupancy": 0.25, "bus_queue_time": 2,
         "instructions_per_cpu_s": 5e8},
        {"name": "b", "llc_miss_rate": 0.1}]}"#;

    #[test]
    fn shares_are_those_of_the_recording() {
        let mut sample = Sample::default();
        sample.set(
            Signal::CpuTime,
            Reading::fully_counted(4e6, Tier::Proc, 10_000_000),
        );
        parse(TWO).unwrap().fill("a", &mut sample, 10_000_000);
        let get = |signal| sample.get(signal).unwrap();
        assert_eq!(get(Signal::LlcMisses) / get(Signal::LlcAccesses), 0.5);
        assert_eq!(get(Signal::BusBusyCycles) / get(Signal::Cycles), 0.25);
        assert_eq!(get(Signal::BusQueueCycles) / get(Signal::Cycles), 2.0);
        assert_eq!(get(Signal::Instructions), 2e6);
    }

    #[test]
    fn what_was_counted_stays() {
        let mut sample = Sample::default();
        let counted = Reading::fully_counted(7.0, Tier::Counters, 10);
        sample.set(Signal::Instructions, counted);
        parse(TWO).unwrap().fill("b", &mut sample, 10);
        assert_eq!(sample.reading(Signal::Instructions), Some(counted));
    }

    #[test]
    fn only_what_every_program_has_is_offered() {
        let signals = parse(TWO).unwrap().signals();
        assert!(signals.contains(&Signal::LlcMisses));
        assert!(!signals.contains(&Signal::BusBusyCycles));
    }

    #[test]
    fn missing_program_error_lists_known_programs() {
        let missing = parse(TWO).unwrap().check("c").unwrap_err().to_string();
        assert_eq!(missing, "profile p.json has no program 'c'; it has a, b");
    }

    #[test]
    fn faults_are_named() {
        let row = |row: &str| error(&format!("{{\"programs\": [{row}]}}"));
        assert!(error("{").starts_with("profile p.json: "));
        assert!(error("{\"programs\": []}").contains("no program has measures"));
        assert!(row(r#"{"name": "a"}"#).contains("no program has measures"));
        let over = row(r#"{"name": "a", "llc_miss_rate": 1.5}"#);
        assert!(
            over.contains("llc_miss_rate of program 'a' is 1.5; expected"),
            "{over}"
        );
        let one = r#"{"name": "a", "llc_miss_rate": 0.5}"#;
        assert!(row(&format!("{one},{one}")).contains("'a' is there twice"));
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in any::<String>()) {
            prop_assert!(parse(&text).is_err());
        }
    }
}
