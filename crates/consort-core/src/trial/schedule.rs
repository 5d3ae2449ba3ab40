//! Order and times of the stretches of a trial.

use crate::policy::PolicyRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

/// Kind of a stretch: with management or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// The policy decides.
    Managed,
    /// Every thread is unrestricted and nothing is nudged.
    Unmanaged,
}

/// Times of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialTiming {
    /// Time at the beginning of each stretch that does not count, ns: threads find their places, and
    /// caches their contents.
    pub settle_ns: u64,
    /// Time that counts, ns.
    pub measure_ns: u64,
    /// Share of the time that is unmanaged, at most 0.5.
    pub unmanaged_share: f64,
}

impl TrialTiming {
    /// The usual times with quanta of this length: a stretch has 2 quanta to settle and 8 that count,
    /// but no less than 0.5 and 2 s.
    pub fn for_quantum(quantum_ns: u64, unmanaged_share: f64) -> Self {
        Self {
            settle_ns: (2 * quantum_ns).max(500_000_000),
            measure_ns: (8 * quantum_ns).max(2_000_000_000),
            unmanaged_share,
        }
    }

    /// Length of a stretch, ns.
    pub fn stretch_ns(&self) -> u64 {
        self.settle_ns + self.measure_ns
    }
}

/// Orders in which the arms of rounds of whole runs take their turns.
#[derive(Clone, Debug)]
pub struct RoundOrders(PolicyRng);

impl RoundOrders {
    /// Draws from this seed.
    pub fn new(seed: u64) -> Self {
        Self(PolicyRng::seed_from_u64(seed))
    }

    /// The same arms in random order.
    pub fn shuffle(&mut self, mut arms: Vec<usize>) -> Vec<usize> {
        arms.shuffle(&mut self.0);
        arms
    }
}

/// Orders of pairs, each drawn by itself: then pairs err independently of each other, however
/// slowly the program's own progress varies.
#[derive(Clone, Debug)]
pub(super) struct PairOrders(pub(super) PolicyRng);

impl PairOrders {
    /// Returns true if the next pair begins managed.
    pub(super) fn draw(&mut self) -> bool {
        self.0.random()
    }

    /// Managed time behind a pair, ns, so that its unmanaged stretch has its share of the whole: half
    /// to one and a half times the mean, because programs may have periods of their own.
    pub(super) fn gap_ns(&mut self, timing: &TrialTiming) -> u64 {
        let share = timing.unmanaged_share.clamp(1e-6, 0.5);
        let mean = timing.stretch_ns() as f64 * (1.0 / share - 2.0);
        (mean * (0.5 + self.0.random::<f64>())) as u64
    }
}
