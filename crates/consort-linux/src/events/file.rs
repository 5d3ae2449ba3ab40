//! Event files: their form, their rules, and the CPUs that each is for.

use super::expr::Expr;
use crate::topology::CpuIdentity;
use consort_core::Signal;
use consort_describe::describe::Locations;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use thiserror::Error;

/// The events of one microarchitecture family, one TOML file:
///
/// ```toml
/// name = "amd-bulldozer"            # the file's name without .toml
/// title = "AMD family 15h"          # for people
/// sources = ["..."]                 # where every encoding was looked up; at least one
///
/// [[match]]                         # which CPUs; at least one, any may hold
/// architecture = "x86"              # x86: vendor, family, models = [[first, last], ...]
/// vendor = "AuthenticAMD"           # arm: implementer, part
/// family = 0x15                     # power: name, the first word of the `cpu` line
/// models = [[0x00, 0x7f]]
///
/// [[pmu]]                           # one for each PMU type; groups never span two
/// names = ["cpu"]                   # in /sys/bus/event_source/devices; * at the end fits any rest
/// programmable = 6                  # counters that take any event, per CPU
/// fixed = 0                         # counters that take one event each
///
/// [[pmu.event]]
/// name = "fpu_empty"                # as formulas use it: a-z, 0-9, _
/// config = 0x01                     # perf_event_attr.config with the PMU's type
/// config1 = 0                       # optional
/// config2 = 0                       # optional
/// unit = "cycles-of-cause"          # what is counted, see `EventUnit`
/// place = "programmable"            # or "fixed", or "metric" (needs no counter)
/// counters = [3, 4, 5]              # optional: the only programmable counters that can hold it
/// slots = 1                         # 2: takes an even counter and the next one
/// leader = "slots"                  # optional: must be in a group led by this event
///
/// [[pmu.formula]]
/// signal = "fp-usage"               # a `consort_core::Signal`
/// value = "1 - fpu_empty / cycles"  # for cycle-stack: components = [{ name, value, optional }, ...]
/// ```
///
/// Every PMU has an event of unit `cycles` and one of unit `instructions`. Shares (fp-usage,
/// memory-stall) are cut to 0 to 1; the components of a cycle stack are amounts in any common unit.
/// Unknown keys are errors.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventFile {
    /// Name of the file without `.toml`.
    pub name: String,
    /// Name of the family for people.
    pub title: String,
    /// Documents from which the encodings were taken.
    pub sources: Vec<String>,
    /// CPUs that the file is for: all that fit one of the rules.
    #[serde(rename = "match")]
    pub matches: Vec<MatchRule>,
    /// One entry for each PMU type.
    #[serde(rename = "pmu")]
    pub pmus: Vec<PmuEvents>,
}

/// A rule for the CPUs that an event file is for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "architecture", rename_all = "lowercase", deny_unknown_fields)]
pub enum MatchRule {
    /// CPUs by `CPUID` leaf 1.
    X86 {
        /// Vendor, for example `GenuineIntel`.
        vendor: String,
        /// Family, extended family included.
        family: u32,
        /// First and last of each range of models.
        models: Vec<[u32; 2]>,
    },
    /// CPUs by `MIDR_EL1`.
    Arm {
        /// Implementer, for example 0x41.
        implementer: u32,
        /// Part number.
        part: u32,
    },
    /// CPUs by the first word of the `cpu` line, without letters at its end.
    Power {
        /// Name of the processor, for example `POWER9`.
        name: String,
    },
}

/// The events of one PMU type.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PmuEvents {
    /// Names in `/sys/bus/event_source/devices`; a `*` at the end fits any rest.
    pub names: Vec<String>,
    /// Number of counters that take any event, per CPU.
    pub programmable: usize,
    /// Number of counters that take one event each, per CPU.
    pub fixed: usize,
    /// Events that can be counted.
    #[serde(rename = "event")]
    pub events: Vec<EventDefinition>,
    /// Signals that can be computed from them.
    #[serde(rename = "formula")]
    pub formulas: Vec<SignalFormula>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventDefinition {
    /// Name of the event in formulas and reports.
    pub name: String,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`.
    #[serde(default)]
    pub config1: u64,
    /// `perf_event_attr.config2`.
    #[serde(default)]
    pub config2: u64,
    /// Thing that is counted.
    pub unit: EventUnit,
    /// Kind of counter that counts it.
    #[serde(default)]
    pub place: CounterKind,
    /// The only programmable counters that can hold the event; `None` for any.
    pub counters: Option<Vec<usize>>,
    /// Number of counters that the event takes: 1, or 2 for an even one and the next.
    #[serde(default = "one_slot")]
    pub slots: usize,
    /// Name of the event that must lead its group, if any must.
    pub leader: Option<String>,
}

fn one_slot() -> usize {
    1
}

/// Thing that an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventUnit {
    /// Core cycles in which the thread ran.
    Cycles,
    /// Instructions retired.
    Instructions,
    /// Cycles that one cause took.
    CyclesOfCause,
    /// Issue or dispatch slots.
    Slots,
    /// Micro-operations; their number per instruction is not architectural.
    Operations,
    /// Floating-point operations, one for each element.
    FpOperations,
    /// Scalar floating-point arithmetic instructions.
    FpScalarInstructions,
    /// Packed floating-point arithmetic instructions.
    FpPackedInstructions,
    /// Branch instructions retired.
    Branches,
    /// Accesses to a cache; their number depends on what else is cached and prefetched.
    CacheAccesses,
}

/// Kind of counter that counts an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CounterKind {
    /// Any programmable counter that `counters` allows.
    #[default]
    Programmable,
    /// A counter of its own.
    Fixed,
    /// No counter: the processor derives the count from that of the event's leader.
    Metric,
}

/// Computation of a signal from counts of events.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalFormula {
    /// The signal.
    pub signal: Signal,
    /// The signal's value; `None` for a cycle stack.
    pub value: Option<Expr>,
    /// The components of a cycle stack; `None` for other signals.
    pub components: Option<Vec<FormulaPart>>,
}

/// One component of a cycle stack.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormulaPart {
    /// Name of the component.
    pub name: String,
    /// Formula over event names.
    pub value: Expr,
    /// True if it is left out where its events are not counted. Its name is that of an earlier
    /// component, `/`, and its own; where it is counted, it is taken out of that one.
    #[serde(default)]
    pub optional: bool,
}

impl MatchRule {
    /// Returns true if the rule is for a CPU of this identity.
    pub fn fits(&self, identity: &CpuIdentity) -> bool {
        match (self, identity) {
            (
                Self::X86 {
                    vendor,
                    family,
                    models,
                },
                CpuIdentity::X86 {
                    vendor: v,
                    family: f,
                    model,
                    ..
                },
            ) => {
                let inside = |[first, last]: &[u32; 2]| (first..=last).contains(&model);
                vendor == v && family == f && models.iter().any(inside)
            }
            (
                Self::Arm { implementer, part },
                CpuIdentity::Arm {
                    implementer: i,
                    part: p,
                    ..
                },
            ) => implementer == i && part == p,
            // `POWER8E` and `POWER7+` are variants of `POWER8` and `POWER7`, but `POWER10` is no
            // variant of `POWER1`.
            (Self::Power { name }, CpuIdentity::Power { name: n, .. }) => {
                let rest = n.strip_prefix(name.as_str());
                rest.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphabetic() || b == b'+'))
            }
            _ => false,
        }
    }
}

impl PmuEvents {
    /// Signals to count: all that it has a formula for, accesses of the L1D only on wish.
    pub fn wanted(&self, l1d: bool) -> Vec<Signal> {
        let signals = self.formulas.iter().map(|formula| formula.signal);
        signals
            .filter(|signal| l1d || *signal != Signal::L1dAccesses)
            .collect()
    }

    /// Returns true if the entry is for a PMU of this name in sysfs.
    pub fn is_named(&self, pmu: &str) -> bool {
        let fits = |name: &String| match name.strip_suffix('*') {
            Some(start) => pmu.starts_with(start),
            None => name == pmu,
        };
        self.names.iter().any(fits)
    }

    /// Returns the event of this name.
    pub fn event(&self, name: &str) -> Option<&EventDefinition> {
        self.events.iter().find(|e| e.name == name)
    }

    /// Returns the first event of this unit that has no leader.
    pub fn event_of(&self, unit: EventUnit) -> Option<&EventDefinition> {
        let fits = |e: &&EventDefinition| e.unit == unit && e.leader.is_none();
        self.events.iter().find(fits)
    }

    /// Returns the formula for a signal.
    pub fn formula(&self, signal: Signal) -> Option<&SignalFormula> {
        self.formulas.iter().find(|f| f.signal == signal)
    }
}

impl FormulaPart {
    /// True if it is an optional part of the component of this name.
    pub(crate) fn is_part_of(&self, whole: &str) -> bool {
        self.optional
            && self
                .name
                .rsplit_once('/')
                .is_some_and(|(of, _)| of == whole)
    }
}

impl SignalFormula {
    /// Returns the names of all events that the formula needs.
    pub fn names(&self) -> BTreeSet<&str> {
        let needed = self.components.iter().flatten().filter(|c| !c.optional);
        let values = needed.map(|c| &c.value).chain(&self.value);
        values.flat_map(Expr::names).collect()
    }

    /// Returns the names of the events of optional components.
    pub fn optional_names(&self) -> BTreeSet<&str> {
        let optional = self.components.iter().flatten().filter(|c| c.optional);
        optional.flat_map(|c| c.value.names()).collect()
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

/// Parses and checks an event file; `file` is its name for errors.
///
/// # Errors
/// If the file has an unknown key, an impossible value or an undefined name; the error is about the
/// first one.
pub fn parse_event_file(file: &str, text: &str) -> Result<EventFile, EventFileError> {
    let fault = |line, problem| EventFileError {
        file: file.to_owned(),
        line,
        problem,
    };
    let parsed: EventFile = toml::from_str(text).map_err(|error| {
        let line = Locations::new(text).line(error.span().map_or(0, |span| span.start));
        fault(line, prepend_key(text, error.message(), error.span()))
    })?;
    match check_file(&parsed) {
        Ok(()) => Ok(parsed),
        Err((key, problem)) => Err(fault(Locations::new(text).line_of(&key), problem)),
    }
}

/// Puts the key before serde's message about a bad value, which does not name it.
fn prepend_key(text: &str, message: &str, at: Option<Range<usize>>) -> String {
    let line = at.and_then(|at| text.lines().nth(Locations::new(text).line(at.start) - 1));
    let key = line
        .and_then(|line| line.split_once('='))
        .map(|(key, _)| key.trim());
    match key {
        Some(key) if !message.contains(key) => format!("{key}: {message}"),
        _ => message.to_owned(),
    }
}

/// `Ok`, or the path of the first key with a fault, and the fault.
type CheckResult = Result<(), (String, String)>;

fn require(holds: bool, key: impl Into<String>, what: impl Into<String>) -> CheckResult {
    match holds {
        true => Ok(()),
        false => Err((key.into(), what.into())),
    }
}

fn require_filled<T>(parent: &str, key: &str, list: &[T]) -> CheckResult {
    let what = format!("{key} is empty; give at least one");
    require(!list.is_empty(), format!("{parent}{key}"), what)
}

fn check_file(file: &EventFile) -> CheckResult {
    require_filled("", "sources", &file.sources)?;
    require_filled("", "match", &file.matches)?;
    require_filled("", "pmu", &file.pmus)?;
    for rule in &file.matches {
        if let MatchRule::X86 { models, .. } = rule {
            let ordered = !models.is_empty() && models.iter().all(|[first, last]| first <= last);
            let what = "models needs ranges [first, last] with first not above last";
            require(ordered, "match", what)?;
        }
    }
    for (index, pmu) in file.pmus.iter().enumerate() {
        let at = format!("pmu[{index}].");
        require_filled(&at, "names", &pmu.names)?;
        let what = "programmable is out of range; give 1 to 32";
        let is_possible = (1..=32).contains(&pmu.programmable);
        require(is_possible, format!("{at}programmable"), what)?;
        check_events(pmu, &at)?;
        check_formulas(pmu, &at)?;
    }
    Ok(())
}

fn check_events(pmu: &PmuEvents, at: &str) -> CheckResult {
    let mut seen = BTreeSet::new();
    for (index, event) in pmu.events.iter().enumerate() {
        let (name, key) = (&event.name, format!("{at}event[{index}].name"));
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .bytes()
                .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        let what = format!("name {name:?} is not a name; use a-z first, then a-z, 0-9 and _");
        require(is_name, key.as_str(), what)?;
        let what = format!("name {name:?} is given twice; names of one PMU differ");
        require(seen.insert(name), key, what)?;
    }
    for (index, event) in pmu.events.iter().enumerate() {
        check_event(event, pmu, &format!("{at}event[{index}]."))?;
    }
    let fixed = pmu.events.iter().filter(|e| e.place == CounterKind::Fixed);
    let used = fixed.count();
    let what = format!("fixed is too low: {used} events have a counter of their own");
    require(used <= pmu.fixed, format!("{at}fixed"), what)?;
    for unit in [EventUnit::Cycles, EventUnit::Instructions] {
        let what =
            format!("event: none has unit {unit:?}; every PMU needs cycles and instructions");
        require(pmu.event_of(unit).is_some(), format!("{at}event"), what)?;
    }
    Ok(())
}

fn check_event(event: &EventDefinition, pmu: &PmuEvents, at: &str) -> CheckResult {
    let what = "slots is out of range; give 1 or 2";
    require((1..=2).contains(&event.slots), format!("{at}slots"), what)?;
    let constrained = event.slots > 1 || event.counters.is_some();
    let fits = event.place == CounterKind::Programmable || !constrained;
    let what = "counters and slots are for programmable events only";
    require(fits, format!("{at}name"), what)?;
    if let Some(counters) = &event.counters {
        require_filled(at, "counters", counters)?;
        let inside = counters.iter().all(|&c| c < pmu.programmable);
        let what = format!("counters names one outside 0 to {}", pmu.programmable - 1);
        require(inside, format!("{at}counters"), what)?;
    }
    let Some(name) = &event.leader else {
        let what = "place \"metric\" needs a leader";
        return require(
            event.place != CounterKind::Metric,
            format!("{at}name"),
            what,
        );
    };
    let leads = |e: &EventDefinition| e.name == *name && e.leader.is_none();
    let what = format!("leader {name:?} is not an event of this PMU without a leader of its own");
    require(pmu.events.iter().any(leads), format!("{at}leader"), what)
}

fn check_formulas(pmu: &PmuEvents, at: &str) -> CheckResult {
    let computable = [
        Signal::Cycles,
        Signal::Instructions,
        Signal::FpUsage,
        Signal::MemoryStall,
        Signal::CycleStack,
        Signal::L1dAccesses,
        Signal::LlcAccesses,
        Signal::LlcMisses,
    ];
    let mut seen = BTreeSet::new();
    for (index, formula) in pmu.formulas.iter().enumerate() {
        let (signal, at) = (formula.signal, format!("{at}formula[{index}]."));
        let key = format!("{at}signal");
        let what = format!("signal {signal} has two formulas");
        require(seen.insert(signal), key.as_str(), what)?;
        let what = format!("signal {signal} does not come from hardware counters");
        require(computable.contains(&signal), key.as_str(), what)?;
        let stack = signal == Signal::CycleStack;
        let fits = formula.value.is_some() != stack && formula.components.is_some() == stack;
        let what = "signal cycle-stack needs components, any other a value";
        require(fits, key, what)?;
        if let Some(value) = &formula.value {
            check_known_names(pmu, value, format!("{at}value"))?;
        }
        let Some(components) = &formula.components else {
            continue;
        };
        require_filled(&at, "components", components)?;
        for (index, component) in components.iter().enumerate() {
            let key = format!("{at}components[{index}].value");
            check_known_names(pmu, &component.value, key)?;
            let is_there = components[..index]
                .iter()
                .any(|c| component.is_part_of(&c.name));
            let what = "an optional component is named WHOLE/PART and comes after WHOLE";
            let key = format!("{at}components[{index}].name");
            require(!component.optional || is_there, key, what)?;
        }
    }
    Ok(())
}

fn check_known_names(pmu: &PmuEvents, value: &Expr, key: String) -> CheckResult {
    match value.names().iter().find(|name| pmu.event(name).is_none()) {
        Some(name) => Err((key, format!("value: {name:?} is not an event of this PMU"))),
        None => Ok(()),
    }
}
