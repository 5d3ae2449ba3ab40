//! `l1`, `l2`, `llc` and `dram`: chases, in which every load needs the result of the one before it.
//!
//! The lines of a region form one cycle in random order. Each line holds the
//! number of the next line and its own rank on the cycle, so the rank reached
//! after any number of steps is known without walking again.
//!
//! Pitfalls: all threads of a group together use at most [`CAP_BYTES`] (beyond a smallest size per
//! thread); on chips with a larger last-level cache a `dram` chase partly hits it.

use crate::kernel::{
    ExpectedClass, Kernel, KernelBuilder, KernelEntry, KernelSetup, make_builders,
};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// `l1`: half of the level-1 data cache.
pub(crate) const L1: KernelEntry = KernelEntry {
    name: "l1",
    summary: "dependent loads that hit the level-1 data cache",
    stresses: "load latency of level 1",
    class: ExpectedClass::Memory,
    builders: |setup| Chase::builders(setup, setup.caches.l1d_bytes / 2),
};

/// `l2`: half of the level-2 cache, or twice the level-1 data cache if that is more.
pub(crate) const L2: KernelEntry = KernelEntry {
    name: "l2",
    summary: "dependent loads that miss level 1 and hit the level-2 cache",
    stresses: "the level-2 cache",
    class: ExpectedClass::Memory,
    builders: |setup| {
        let caches = setup.caches;
        Chase::builders(setup, (caches.l2_bytes / 2).max(2 * caches.l1d_bytes))
    },
};

/// `llc`: half of the last-level cache for all threads together, at most 16 MiB (a VM rarely holds
/// all of the cache that it reports, and beyond that page walks dominate), but at least twice the
/// level-2 cache for each. If level 2 is the last level, the chase misses it, as `dram` does.
pub(crate) const LLC: KernelEntry = KernelEntry {
    name: "llc",
    summary: "dependent loads that miss level 2 and hit the last-level cache",
    stresses: "the last-level cache",
    class: ExpectedClass::Memory,
    builders: |setup| {
        let caches = setup.caches;
        let total = (caches.llc_bytes / 2).min(16 << 20);
        Chase::builders(
            setup,
            share_bytes(total, setup.threads, 2 * caches.l2_bytes),
        )
    },
};

/// `dram`: four times the last-level cache for all threads together, but at least 4 MiB for each.
pub(crate) const DRAM: KernelEntry = KernelEntry {
    name: "dram",
    summary: "dependent loads that miss all caches (256 MiB at most for all threads together)",
    stresses: "memory latency",
    class: ExpectedClass::Memory,
    builders: |setup| {
        let total = setup.caches.llc_bytes.saturating_mul(4);
        Chase::builders(setup, share_bytes(total, setup.threads, 4 << 20))
    },
};

/// The most memory that the chases of one group of threads use together.
const CAP_BYTES: usize = 256 << 20;

/// Loads per unit: a prime, so that on hardly any ring a unit ends where it began.
const STEPS: u64 = 2_039;

/// One cache line. 64 bytes is the line size of x86_64 and of most aarch64
/// cores; on the few with 128 a chase uses every other half of a line pair.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct ChaseLine {
    next: u32,
    rank: u32,
}

/// A kernel that walks the cycle.
#[derive(Debug)]
pub(crate) struct Chase {
    lines: Vec<ChaseLine>,
    at: u32,
    units: u64,
}

impl Chase {
    /// A cycle over `bytes` (at least two lines) in an order drawn from `seed`.
    pub(crate) fn new(bytes: usize, seed: u64) -> Self {
        Self {
            lines: cycle(bytes, seed),
            at: 0,
            units: 0,
        }
    }

    fn builders(setup: &KernelSetup, bytes: usize) -> Vec<KernelBuilder> {
        make_builders(setup, move |index| {
            Ok(Self::new(bytes, u64::try_from(index).unwrap_or(0)))
        })
    }
}

/// The share of `total` bytes for each of `threads`, not below `least`.
pub(crate) fn share_bytes(total: usize, threads: usize, least: usize) -> usize {
    (total.min(CAP_BYTES) / threads.max(1)).max(least)
}

/// Lines linked into one cycle: line 0 first, the others shuffled.
fn cycle(bytes: usize, seed: u64) -> Vec<ChaseLine> {
    let count = (bytes / size_of::<ChaseLine>()).clamp(2, CAP_BYTES / size_of::<ChaseLine>());
    let last = u32::try_from(count - 1).expect("CAP_BYTES / 64 lines are fewer than 2^32");
    let mut order: Vec<u32> = (0..=last).collect();
    order[1..].shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
    let mut lines = vec![ChaseLine { next: 0, rank: 0 }; count];
    for rank in 0..=last {
        let next = order[(rank as usize + 1) % count];
        lines[order[rank as usize] as usize] = ChaseLine { next, rank };
    }
    lines
}

impl Kernel for Chase {
    /// The checksum is the rank of the line reached.
    fn work(&mut self, units: u64) -> u64 {
        let lines = self.lines.as_slice();
        // A local: the field would be stored at every step, for the sake of the bounds check.
        let mut at = self.at;
        for _ in 0..units * STEPS {
            at = lines[at as usize].next;
        }
        self.at = at;
        self.units += units;
        u64::from(self.lines[at as usize].rank)
    }

    fn expected(&self) -> u64 {
        self.units.wrapping_mul(STEPS) % self.lines.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cycle_visits_every_line_once(bytes in 0_usize..100_000, seed: u64) {
            let lines = cycle(bytes, seed);
            let mut seen = vec![false; lines.len()];
            let mut at = 0;
            for rank in 0..lines.len() {
                prop_assert_eq!(lines[at].rank as usize, rank);
                prop_assert!(!std::mem::replace(&mut seen[at], true));
                at = lines[at].next as usize;
            }
            prop_assert_eq!(at, 0);
        }

        #[test]
        fn shares_stay_below_the_cap(total: usize, threads in 0_usize..1_000) {
            prop_assert!(share_bytes(total, threads, 0) * threads <= CAP_BYTES);
        }
    }

    #[test]
    fn broken_link_is_noticed() {
        let mut chase = Chase::new(64 * 64, 1);
        let skipped = chase.lines[0].next as usize;
        chase.lines[0].next = chase.lines[skipped].next;
        assert_ne!(chase.work(1), chase.expected());
    }
}
