//! Objective that pairs are chosen for.

use crate::policy::{PolicyError, PolicyOptions};

/// The cost of a slowdown; the sum over all threads is made least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowdownObjective {
    /// The slowdown itself, as in the paper (section 5.3): the least ANTT.
    Slowdown,
    /// Loss of throughput by it: the most STP.
    Throughput,
    /// Its square: one large slowdown is dearer than two small ones of the same sum.
    Fairness,
}

const WORDS: [(&str, SlowdownObjective); 3] = [
    ("slowdown", SlowdownObjective::Slowdown),
    ("throughput", SlowdownObjective::Throughput),
    ("fairness", SlowdownObjective::Fairness),
];

impl SlowdownObjective {
    /// The objective by its word; none for any other.
    pub fn from_name(word: &str) -> Option<Self> {
        let found = WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, objective)| *objective)
    }

    pub(super) fn from_options(options: &PolicyOptions<'_>) -> Result<Self, PolicyError> {
        options.one_of("objective", &WORDS, "slowdown, throughput or fairness")
    }

    /// Cost of a thread of this slowdown.
    pub fn cost(self, slowdown: f64) -> f64 {
        match self {
            Self::Slowdown => slowdown,
            Self::Throughput => 1.0 - 1.0 / slowdown,
            Self::Fairness => slowdown * slowdown,
        }
    }
}
