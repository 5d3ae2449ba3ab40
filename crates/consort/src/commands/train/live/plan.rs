//! The plan of the worker process, and what it tells of it.

use consort_core::PuId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Length of a slice: long against a kernel's unit, short against changes of the host's speed.
const SLICE: Duration = Duration::from_millis(20);

/// Plan of the worker process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KernelPlan {
    pub(super) programs: Vec<String>,
    /// One PU per slot.
    pub(super) pus: [PuId; 2],
    pub(super) slice_ms: u64,
    /// Slices alone, and as many together.
    pub(super) rounds: u64,
}

/// Work of one thread: a kernel in one slot of one pair, alone or together.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KernelRun {
    pub(super) tid: u32,
    /// Number of the pair in [`KernelPlan::pairs`].
    pub(super) pair: usize,
    pub(super) slot: usize,
    pub(super) together: bool,
    pub(super) program: String,
    pub(super) co_runner: String,
    /// Units of work done.
    pub(super) units: u64,
    /// CPU time that they took, ns.
    pub(super) cpu_ns: u64,
}

impl KernelPlan {
    pub(super) fn new(programs: Vec<String>, pus: [PuId; 2], time: Duration) -> Self {
        let rounds = time.as_nanos().div_ceil(SLICE.as_nanos()) as u64;
        Self {
            programs,
            pus,
            slice_ms: SLICE.as_millis() as u64,
            rounds: rounds.max(1),
        }
    }

    /// All pairs by number of program, those of a program with itself included.
    pub(super) fn pairs(&self) -> Vec<[usize; 2]> {
        let n = self.programs.len();
        (0..n).flat_map(|a| (a..n).map(move |b| [a, b])).collect()
    }

    /// Time of all slices: each member alone in turn, then both.
    pub(super) fn duration(&self) -> Duration {
        let slices = 3 * self.rounds * self.pairs().len() as u64;
        Duration::from_millis(slices * self.slice_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pairs_are_run_for_the_time_asked() {
        let programs = ["a", "b", "c"].map(str::to_owned).to_vec();
        let plan = KernelPlan::new(programs, [PuId(0), PuId(1)], Duration::from_millis(90));
        assert_eq!(
            plan.pairs(),
            [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]
        );
        assert_eq!(plan.rounds, 5);
        assert_eq!(plan.duration(), Duration::from_millis(6 * 3 * 100));
    }
}
