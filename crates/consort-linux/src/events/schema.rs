//! The form of an event file, as it is written.
//!
//! One TOML file describes one microarchitecture family:
//!
//! ```toml
//! name = "amd-bulldozer"            # the file's name without .toml
//! title = "AMD family 15h"          # for people
//! sources = ["..."]                 # where every encoding was looked up; at least one
//!
//! [[match]]                         # which CPUs; at least one, any may hold
//! architecture = "x86"              # x86: vendor, family, models = [[first, last], ...]
//! vendor = "AuthenticAMD"           # arm: implementer, part
//! family = 0x15                     # power: name, the first word of the `cpu` line
//! models = [[0x00, 0x7f]]
//!
//! [[pmu]]                           # one for each PMU type; groups never span two
//! names = ["cpu"]                   # in /sys/bus/event_source/devices; * at the end fits any rest
//! programmable = 6                  # counters that take any event, per PU
//! fixed = 0                         # counters that take one event each
//!
//! [[pmu.event]]
//! name = "fpu_empty"                # as formulas use it: a-z, 0-9, _
//! config = 0x01                     # perf_event_attr.config with the PMU's type
//! config1 = 0                       # optional
//! config2 = 0                       # optional
//! unit = "cycles-of-cause"          # what is counted, see `EventUnit`
//! place = "programmable"            # or "fixed", or "metric" (needs no counter)
//! counters = [3, 4, 5]              # optional: the only programmable counters that can hold it
//! slots = 1                         # 2: takes an even counter and the next one
//! leader = "slots"                  # optional: must be in a group led by this event
//!
//! [[pmu.formula]]
//! signal = "fp-usage"               # a `consort_core::Signal`
//! value = "1 - fpu_empty / cycles"  # for cycle-stack: components = [{ name, value }, ...]
//! ```
//!
//! Every PMU has an event of unit `cycles` and one of unit `instructions`.
//! Shares (fp-usage, memory-stall) are cut to 0 to 1; the components of a cycle
//! stack are amounts in any common unit. Unknown keys are errors.

use super::expr::Expr;
use consort_core::Signal;
use serde::{Deserialize, Deserializer, Serialize};
use toml::Spanned;

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
    /// Micro-operations, of which the number per instruction is not architectural.
    Operations,
    /// Floating-point operations, one for each element.
    FpOperations,
    /// Scalar floating-point arithmetic instructions.
    FpScalarInstructions,
    /// Packed floating-point arithmetic instructions.
    FpPackedInstructions,
    /// Branch instructions retired.
    Branches,
    /// Accesses to a cache, of which the number depends on what else is cached and prefetched.
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFile {
    pub name: Spanned<String>,
    pub title: String,
    pub sources: Spanned<Vec<String>>,
    #[serde(rename = "match")]
    pub matches: Spanned<Vec<MatchRule>>,
    #[serde(rename = "pmu")]
    pub pmus: Spanned<Vec<RawPmu>>,
}

/// A rule that tells the CPUs that an event file is for.
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPmu {
    pub names: Spanned<Vec<String>>,
    pub programmable: Spanned<usize>,
    pub fixed: Spanned<usize>,
    #[serde(rename = "event")]
    pub events: Spanned<Vec<RawEvent>>,
    #[serde(rename = "formula")]
    pub formulas: Spanned<Vec<RawFormula>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawEvent {
    pub name: Spanned<String>,
    pub config: u64,
    #[serde(default)]
    pub config1: u64,
    #[serde(default)]
    pub config2: u64,
    pub unit: EventUnit,
    #[serde(default)]
    pub place: CounterKind,
    pub counters: Option<Spanned<Vec<usize>>>,
    pub slots: Option<Spanned<usize>>,
    pub leader: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFormula {
    pub signal: Spanned<Signal>,
    pub value: Option<Spanned<ParsedFormula>>,
    pub components: Option<Spanned<Vec<RawComponent>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawComponent {
    pub name: String,
    pub value: Spanned<ParsedFormula>,
}

/// A formula that is parsed together with its file, so that errors have a line.
pub(crate) struct ParsedFormula(pub Expr);

impl<'de> Deserialize<'de> for ParsedFormula {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}
