//! Claims of threads on the core that they share, the core's supply, and each thread's part of it.

use super::caches::SETS;
use super::core_model::{CLASSES, DIVIDER_KINDS};

/// Resources of a core that its threads use together: dispatch slots, turns of fetch, ports.
pub(crate) const RESOURCES: usize = 8;
/// Position of the dispatch slots among them.
pub(crate) const SLOTS: usize = 0;
/// Position of the turns of fetch.
pub(crate) const FETCH: usize = 1;

/// Claim of a thread on its core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Claim {
    /// Instructions per cycle that it could dispatch while active and alone.
    pub(crate) rate: f64,
    /// Share of time in which it is active, 0 to 1.
    pub(crate) active: f64,
    /// Share of time in which it dispatches what will be thrown away, 0 to 1: slots that others
    /// lose and that do it no good.
    pub(crate) wrong_path: f64,
    /// Share of time in which it dispatches nothing but fetches, on a wrong path or behind one,
    /// 0 to 1.
    pub(crate) refills: f64,
    /// Instructions that it dispatches at most in one of its turns.
    pub(crate) per_turn: f64,
    /// Use of each resource per instruction.
    pub(crate) use_of: [f64; RESOURCES],
    /// Terms of its rate where its front end may be slower than its window.
    pub(crate) front: Front,
}

/// A thread's present part of every shared structure, as estimated by the iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ResourceShares {
    /// Bytes of data, as its curve counts them, in L1D, L2, LLC, and over all LLC domains.
    pub(crate) data: [f64; 4],
    /// Bytes of code, as its curve counts them, in L1I, L2, LLC, and over all LLC domains.
    pub(crate) code: [f64; 4],
    /// Bytes of code in the L1I, for each effective capacity of its sets.
    pub(crate) code_l1i: [f64; SETS],
    /// Window, instructions.
    pub(crate) window: f64,
    /// Instructions per cycle that its entries of issue queues let pass.
    pub(crate) issue: f64,
    /// Entries that strangers insert into its branch predictor per branch of its own.
    pub(crate) strangers: f64,
    /// Cycles that an operation waits for co-runners' operations, by unit class.
    pub(crate) unit_wait: [f64; CLASSES],
    /// Cycles that an operation waits for those of its own thread, by unit class.
    pub(crate) own_wait: [f64; CLASSES],
    /// Share of its dividers that co-runners use, by kind, 0 to 1.
    pub(crate) divided: [f64; DIVIDER_KINDS],
    /// Most demand misses that it can have on their way at once, lines.
    pub(crate) misses: f64,
    /// Entries of the miss queues of the L1D and of the L2 that it can have; infinite if a cache's
    /// description has no queue.
    pub(crate) queues: [f64; 2],
    /// Share of its prefetches that find room in a miss queue, 0 to 1.
    pub(crate) prefetching: f64,
    /// Cycles per instruction while it dispatches; 0 where it is not known yet.
    pub(crate) pace: f64,
}

/// Supply of a core per cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Supply {
    /// Amount of each resource; infinite where there is no limit.
    pub(crate) resources: [f64; RESOURCES],
    /// Threads that can dispatch in one cycle; infinite where all can.
    pub(crate) turns: f64,
    /// True if operations are dispatched in groups, whole or not at all: a turn then brings a group.
    pub(crate) in_groups: bool,
}

/// Terms by which a thread's front end limits its rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Front {
    /// Cycles per instruction of dispatch.
    pub(crate) dispatch: f64,
    /// Cycles per instruction of fetch, those without a turn included.
    pub(crate) fetch: f64,
    /// Unevenness of the two, 0 to 1; see [`overlapped_time`].
    pub(crate) uneven: f64,
    /// Cycles per instruction of fetch that pass without a turn.
    pub(crate) bubbles: f64,
    /// Share of its turns of fetch behind which such cycles pass, 0 to 1.
    pub(crate) pauses: f64,
    /// Cycles per instruction of a full window.
    pub(crate) window: f64,
    /// Share of the instructions that are dispatched into a full window, 0 to 1.
    pub(crate) full: f64,
}

impl Front {
    /// Returns the cycles per instruction where dispatch and fetch take so many.
    pub(super) fn cycles(&self, dispatch: f64, fetch: f64) -> f64 {
        let front = overlapped_time(dispatch, fetch, self.uneven);
        front + self.full * (self.window - front).max(0.0)
    }
}

/// The members of a set, in rising order.
pub(super) fn members(mut set: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let next = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        next
    })
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub(crate) fn four_wide() -> Supply {
        let mut resources = [f64::INFINITY; RESOURCES];
        resources[SLOTS] = 4.0;
        Supply {
            resources,
            turns: f64::INFINITY,
            in_groups: false,
        }
    }

    /// A claim that needs so many turns of fetch per instruction.
    pub(crate) fn fetching(rate: f64, turns: f64) -> Claim {
        let mut claim = claim(rate, 1.0);
        claim.use_of[FETCH] = turns;
        claim
    }

    pub(crate) fn claim(rate: f64, active: f64) -> Claim {
        let mut use_of = [0.0; RESOURCES];
        use_of[SLOTS] = 1.0;
        Claim {
            rate,
            active,
            wrong_path: 0.0,
            refills: 0.0,
            per_turn: 4.0,
            use_of,
            front: Front::default(),
        }
    }
}

/// Time that two limits take if each may hide the other: between the longer and their sum by how
/// `uneven` a program is; see [`IlpSpec::unevenness`](crate::program::IlpSpec::unevenness).
pub(super) fn overlapped_time(a: f64, b: f64, uneven: f64) -> f64 {
    let apart = a - b;
    0.5 * (a + b + (apart * apart + 4.0 * uneven * a * b).sqrt())
}

/// Unevenness of two limits that take so much time together, 0 to 1: the inverse of [`overlapped_time`].
pub(super) fn unevenness(a: f64, b: f64, together: f64) -> f64 {
    let product = (a * b).max(f64::MIN_POSITIVE);
    (1.0 - together * (a + b - together) / product).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unevenness_inverts_overlapped_time(
            a in 0.1f64..2.0,
            b in 0.1f64..2.0,
            uneven in 0.0f64..=1.0,
        ) {
            let together = overlapped_time(a, b, uneven);
            prop_assert!(together >= a.max(b) * (1.0 - 1e-12) && together <= (a + b) * (1.0 + 1e-12));
            prop_assert!((unevenness(a, b, together) - uneven).abs() < 1e-6);
        }
    }
}
