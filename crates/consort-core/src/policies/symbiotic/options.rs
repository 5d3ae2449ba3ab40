//! The options of `symbiotic`.

use super::INFO;
use crate::policy::{OptionInfo, PolicyError, PolicyOptions};

pub(super) const OPTIONS: &[OptionInfo] = &[
    OptionInfo {
        name: "model",
        default: "auto",
        meaning: "the interference model: a FILE.toml of 'consort train', the name of a shipped one, or auto",
    },
    OptionInfo {
        name: "objective",
        default: "slowdown",
        meaning: "what pairs are chosen for: slowdown (least sum), throughput (most STP) or fairness (least sum of squares)",
    },
    OptionInfo {
        name: "correction",
        default: "true",
        meaning: "correct predictions by what came out; needs cycles and instructions",
    },
    OptionInfo {
        name: "period",
        default: "200",
        meaning: "quanta between two measurements of threads alone (a number from 1)",
    },
    OptionInfo {
        name: "alone-ms",
        default: "20",
        meaning: "time that each thread is measured alone, ms (a number from 1)",
    },
    OptionInfo {
        name: "numa",
        default: "true",
        meaning: "leave every thread on the NUMA node of its memory, and pair inside nodes, which the paper's scheduler does not; false with core-asymmetry",
    },
    OptionInfo {
        name: "core-asymmetry",
        default: "false",
        meaning: "first-half (the paper's experiment): the threads that wait for memory most share the first half of the cores; true: learn which cores are bad for them by measuring alone on random cores, and seat by it; or false",
    },
    OptionInfo {
        name: "estimated",
        default: "true",
        meaning: "whether cycle stacks may be estimated from samples instead of counted",
    },
    OptionInfo {
        name: "active",
        default: "0.1",
        meaning: "threads below this share of one PU are left to the OS (0 to 1)",
    },
];

/// Treatment of cores that are alike by name and are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoreAsymmetry {
    /// Nothing is done.
    Ignored,
    /// The first half is faster for memory-bound threads, as on the paper's machine.
    FirstHalf,
    /// It is learnt which are faster.
    Learnt,
}

impl CoreAsymmetry {
    pub(super) fn from_options(options: &PolicyOptions<'_>) -> Result<Self, PolicyError> {
        let words = [
            ("false", Self::Ignored),
            ("first-half", Self::FirstHalf),
            ("true", Self::Learnt),
        ];
        options.one_of("core-asymmetry", &words, "true, first-half or false")
    }
}

/// Reads the option `numa`. Returns true where threads stay on their nodes: then cores of other
/// nodes are never used, and nothing can be learnt of them.
pub(super) fn keeps_home(
    options: &PolicyOptions<'_>,
    asymmetry: CoreAsymmetry,
) -> Result<bool, PolicyError> {
    let asked = options.flag("numa")?;
    let asymmetric = asymmetry != CoreAsymmetry::Ignored;
    if asked && asymmetric && options.is_given("numa") {
        return Err(PolicyError::BadValue {
            policy: INFO.name,
            key: "numa",
            value: "true".to_owned(),
            expected: "false or no such option with core-asymmetry=true or first-half, which use all nodes",
        });
    }
    Ok(asked && !asymmetric)
}
