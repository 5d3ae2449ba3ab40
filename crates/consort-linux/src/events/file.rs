//! Event files after validation.

use super::expr::Expr;
use super::schema::{MatchRule, Place, Unit};
use consort_core::Signal;
use thiserror::Error;

/// The events of one microarchitecture family. The written form is described at
/// [`super::schema`].
#[derive(Clone, Debug, PartialEq)]
pub struct EventFile {
    /// The file's name without `.toml`.
    pub name: String,
    /// The family's name for people.
    pub title: String,
    /// Where the encodings were looked up.
    pub sources: Vec<String>,
    /// Which CPUs it is for.
    pub matches: Vec<MatchRule>,
    /// One entry for each PMU type.
    pub pmus: Vec<PmuEvents>,
}

/// The events of one PMU type.
#[derive(Clone, Debug, PartialEq)]
pub struct PmuEvents {
    /// Names in `/sys/bus/event_source/devices`; a `*` at the end fits any rest.
    pub names: Vec<String>,
    /// Counters that take any event, per PU.
    pub programmable: usize,
    /// Counters that take one event each, per PU.
    pub fixed: usize,
    /// What can be counted.
    pub events: Vec<Event>,
    /// What can be computed.
    pub formulas: Vec<SignalFormula>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name in formulas and reports.
    pub name: String,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`.
    pub config1: u64,
    /// `perf_event_attr.config2`.
    pub config2: u64,
    /// What is counted.
    pub unit: Unit,
    /// Where it is counted.
    pub place: Place,
    /// The only programmable counters that can hold it; `None` for any.
    pub counters: Option<Vec<usize>>,
    /// Counters that it takes: 1, or 2 for an even one and the next.
    pub slots: usize,
    /// The event that must lead its group.
    pub leader: Option<String>,
}

/// How a signal follows from events.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalFormula {
    /// The signal.
    pub signal: Signal,
    /// One unnamed part, or the named components of a cycle stack.
    pub parts: Vec<Part>,
}

/// One value of a [`SignalFormula`].
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The component's name; empty for signals of one value.
    pub name: String,
    /// Its formula over event names.
    pub value: Expr,
}

impl PmuEvents {
    /// Whether the entry is for a PMU of that name in sysfs.
    pub fn is_named(&self, pmu: &str) -> bool {
        let fits = |name: &String| match name.strip_suffix('*') {
            Some(start) => pmu.starts_with(start),
            None => name == pmu,
        };
        self.names.iter().any(fits)
    }

    /// The event of that name.
    pub fn event(&self, name: &str) -> Option<&Event> {
        self.events.iter().find(|e| e.name == name)
    }

    /// The first event of that unit that has no leader.
    pub fn event_of(&self, unit: Unit) -> Option<&Event> {
        let fits = |e: &&Event| e.unit == unit && e.leader.is_none();
        self.events.iter().find(fits)
    }

    /// The formula for a signal.
    pub fn formula(&self, signal: Signal) -> Option<&SignalFormula> {
        self.formulas.iter().find(|f| f.signal == signal)
    }
}

/// Why an event file is not one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}, line {line}: {problem}")]
pub struct EventFileError {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, with the key, and what would be right.
    pub problem: String,
}
