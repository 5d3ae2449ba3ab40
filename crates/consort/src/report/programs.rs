//! Programs of a report: the measures of co-scheduling, in the form that `--profile` takes.

use consort_core::{Observation, ProgramId, Sample, Signal, Tier};
use serde::Serialize;
use std::collections::BTreeMap;

/// One program of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct ProgramRow {
    /// The command, without the folder.
    pub(crate) name: String,
    /// The process at the root of the program.
    pub(crate) pid: u32,
    /// CPU time, s.
    pub(crate) cpu_s: f64,
    /// Energy, J; none where no meter can be read.
    pub(crate) energy_j: Option<f64>,
    /// Instructions per s of CPU time.
    pub(crate) instructions_per_cpu_s: Option<f64>,
    /// Misses of the last-level cache per access.
    pub(crate) llc_miss_rate: Option<f64>,
    /// Share of its cycles in which its data moved over the memory bus.
    pub(crate) bus_occupancy: Option<f64>,
    /// Cycles in which its requests were queued for the bus, per cycle.
    pub(crate) bus_queue_time: Option<f64>,
    /// Source of the measures: `counters`, `recorded` (from a profile, or estimated) or `none`.
    pub(crate) source: &'static str,
}

/// A ratio of two sums.
#[derive(Clone, Copy, Debug, Default)]
struct SumRatio {
    part: f64,
    whole: f64,
}

impl SumRatio {
    fn add(&mut self, part: Option<f64>, whole: Option<f64>) {
        if let (Some(part), Some(whole)) = (part, whole) {
            self.part += part;
            self.whole += whole;
        }
    }

    fn value(self) -> Option<f64> {
        (self.whole > 0.0).then(|| self.part / self.whole)
    }
}

/// Sums of one program.
#[derive(Clone, Debug, Default)]
struct ReportProgramSums {
    cpu_ns: f64,
    energy_j: Option<f64>,
    instructions: SumRatio,
    misses: SumRatio,
    busy: SumRatio,
    queued: SumRatio,
    /// The richest tier that told instructions.
    tier: Option<Tier>,
}

impl ReportProgramSums {
    fn add(&mut self, sample: &Sample) {
        let get = |signal| sample.get(signal);
        self.cpu_ns += sample.cpu_time_ns();
        if let Some(energy) = get(Signal::Energy) {
            *self.energy_j.get_or_insert(0.0) += energy;
        }
        let cycles = get(Signal::Cycles);
        self.instructions
            .add(get(Signal::Instructions), get(Signal::CpuTime));
        self.misses
            .add(get(Signal::LlcMisses), get(Signal::LlcAccesses));
        self.busy.add(get(Signal::BusBusyCycles), cycles);
        self.queued.add(get(Signal::BusQueueCycles), cycles);
        let reported = sample.reading(Signal::Instructions).map(|r| r.tier);
        self.tier = self.tier.max(reported);
    }

    fn row(&self, pid: u32, name: String) -> ProgramRow {
        ProgramRow {
            name,
            pid,
            cpu_s: self.cpu_ns / 1e9,
            energy_j: self.energy_j,
            instructions_per_cpu_s: self.instructions.value().map(|per_ns| 1e9 * per_ns),
            llc_miss_rate: self.misses.value(),
            bus_occupancy: self.busy.value(),
            bus_queue_time: self.queued.value(),
            source: match self.tier {
                Some(Tier::Counters) => "counters",
                Some(_) => "recorded",
                None => "none",
            },
        }
    }
}

/// Sums of all programs.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramTotals {
    sums: BTreeMap<ProgramId, ReportProgramSums>,
}

impl ProgramTotals {
    /// Adds an interval.
    pub(super) fn add(&mut self, seen: &Observation) {
        for thread in seen.threads.iter().chain(&seen.exited) {
            let sums = self.sums.entry(seen.program_of(thread.id)).or_default();
            sums.add(&thread.sample);
        }
    }

    /// The rows of these programs, by the pid at the root of each, with their names.
    pub(super) fn rows(&self, named: Vec<(u32, String)>) -> Vec<ProgramRow> {
        let none = ReportProgramSums::default();
        let row = |(pid, name): (u32, String)| {
            let sums = self.sums.get(&ProgramId(pid)).unwrap_or(&none);
            sums.row(pid, name)
        };
        named.into_iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{Reading, ThreadId, ThreadObservation};
    use std::sync::Arc;

    fn thread(pid: u32, values: &[(Signal, f64)]) -> ThreadObservation {
        let mut sample = Sample::default();
        for &(signal, value) in values {
            sample.set(signal, Reading::fully_counted(value, Tier::Counters, 10));
        }
        ThreadObservation {
            id: ThreadId {
                pid,
                tid: pid,
                start_ticks: 0,
            },
            name: "t".into(),
            original: Arc::default(),
            managed: true,
            last_pu: None,
            sample,
        }
    }

    #[test]
    fn processes_of_a_program_are_summed_and_shares_are_of_what_was_counted_together() {
        let mut programs = ProgramTotals::default();
        let counted = [
            (Signal::CpuTime, 1e9),
            (Signal::Instructions, 2e9),
            (Signal::Cycles, 4e9),
            (Signal::LlcAccesses, 100.0),
            (Signal::LlcMisses, 25.0),
            (Signal::BusBusyCycles, 1e9),
        ];
        programs.add(&Observation {
            threads: vec![thread(7, &counted), thread(8, &[(Signal::CpuTime, 3e9)])],
            programs: BTreeMap::from([(ProgramId(8), ProgramId(7))]),
            ..Observation::default()
        });
        let rows = programs.rows(vec![(7, "a".to_owned()), (9, "b".to_owned())]);
        assert_eq!(rows[0].cpu_s, 4.0);
        assert_eq!(rows[0].instructions_per_cpu_s, Some(2e9));
        assert_eq!(rows[0].llc_miss_rate, Some(0.25));
        assert_eq!(rows[0].bus_occupancy, Some(0.25));
        assert_eq!((rows[0].bus_queue_time, rows[0].source), (None, "counters"));
        assert_eq!((rows[1].cpu_s, rows[1].source), (0.0, "none"));
    }
}
