//! Event files after validation.

use super::expr::Expr;
use super::schema::{CounterKind, EventUnit, MatchRule};
use consort_core::Signal;
use thiserror::Error;

/// The events of one microarchitecture family. The written form is described at
/// [`super::schema`].
#[derive(Clone, Debug, PartialEq)]
pub struct EventFile {
    /// Name of the file without `.toml`.
    pub name: String,
    /// Name of the family for people.
    pub title: String,
    /// Documents from which the encodings were taken.
    pub sources: Vec<String>,
    /// CPUs that the file is for: those that any of the rules fits.
    pub matches: Vec<MatchRule>,
    /// One entry for each PMU type.
    pub pmus: Vec<PmuEvents>,
}

/// The events of one PMU type.
#[derive(Clone, Debug, PartialEq)]
pub struct PmuEvents {
    /// Names in `/sys/bus/event_source/devices`; a `*` at the end fits any rest.
    pub names: Vec<String>,
    /// Number of counters that take any event, per PU.
    pub programmable: usize,
    /// Number of counters that take one event each, per PU.
    pub fixed: usize,
    /// Events that can be counted.
    pub events: Vec<EventDefinition>,
    /// Signals that can be computed from them.
    pub formulas: Vec<SignalFormula>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDefinition {
    /// Name of the event in formulas and reports.
    pub name: String,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`.
    pub config1: u64,
    /// `perf_event_attr.config2`.
    pub config2: u64,
    /// Thing that is counted.
    pub unit: EventUnit,
    /// Kind of counter that counts it.
    pub place: CounterKind,
    /// The only programmable counters that can hold the event; `None` for any.
    pub counters: Option<Vec<usize>>,
    /// Number of counters that the event takes: 1, or 2 for an even one and the next.
    pub slots: usize,
    /// Name of the event that must lead its group, if any must.
    pub leader: Option<String>,
}

/// Computation of a signal from counts of events.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalFormula {
    /// The signal.
    pub signal: Signal,
    /// One unnamed part, or the named components of a cycle stack.
    pub parts: Vec<FormulaPart>,
}

/// One value of a [`SignalFormula`].
#[derive(Clone, Debug, PartialEq)]
pub struct FormulaPart {
    /// Name of the component; empty for signals of one value.
    pub name: String,
    /// Formula over event names.
    pub value: Expr,
}

impl PmuEvents {
    /// Returns true if the entry is for a PMU of this name in sysfs.
    pub fn is_named(&self, pmu: &str) -> bool {
        let fits = |name: &String| match name.strip_suffix('*') {
            Some(start) => pmu.starts_with(start),
            None => name == pmu,
        };
        self.names.iter().any(fits)
    }

    /// The event of this name.
    pub fn event(&self, name: &str) -> Option<&EventDefinition> {
        self.events.iter().find(|e| e.name == name)
    }

    /// The first event of this unit that has no leader.
    pub fn event_of(&self, unit: EventUnit) -> Option<&EventDefinition> {
        let fits = |e: &&EventDefinition| e.unit == unit && e.leader.is_none();
        self.events.iter().find(fits)
    }

    /// The formula for a signal.
    pub fn formula(&self, signal: Signal) -> Option<&SignalFormula> {
        self.formulas.iter().find(|f| f.signal == signal)
    }
}

/// Fault of an event file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}, line {line}: {problem}")]
pub struct EventFileError {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// The fault with its key, and a value that would be right.
    pub problem: String,
}
