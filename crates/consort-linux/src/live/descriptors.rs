//! Descriptors, shared out among the parts of a run.
//!
//! A part that takes the last one blinds all others: without one to spare, a thread cannot be
//! looked up, and one that cannot be looked up seems to have exited.

use nix::sys::resource::{Resource, getrlimit};

/// Number of descriptors kept free for looking things up, for the journal and for the guardian.
const SPARE: usize = 48;
/// Number of descriptors that sampling takes per PU: a steady event and one of the start.
const SAMPLING_PER_PU: usize = 2;
/// Most descriptors for reading `/proc`; more are of no use.
const MOST_FOR_PROC: usize = 4_096;

/// Numbers of descriptors for the parts of a run that keep many open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptors {
    /// Number for files of `/proc` that are kept open.
    pub(super) proc: usize,
    /// Number for threads that are held while they are nudged.
    pub(super) held: usize,
    /// Number for events that count.
    pub(super) counting: usize,
}

impl Descriptors {
    /// Shares out the present limit of this process, on a host with this number of PUs.
    pub(super) fn for_this_process(pus: usize) -> Self {
        let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        Self::share(usize::try_from(limit).unwrap_or(usize::MAX), pus)
    }

    fn share(limit: usize, pus: usize) -> Self {
        let taken = SPARE + SAMPLING_PER_PU * pus;
        let free = limit.saturating_sub(taken);
        let proc = (free / 4).min(MOST_FOR_PROC);
        let held = proc / 4;
        Self {
            proc: proc - held,
            held,
            counting: free - proc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_limits_leave_room_for_many_threads() {
        let expect = |proc, held, counting| Descriptors {
            proc,
            held,
            counting,
        };
        assert_eq!(Descriptors::share(13, 2), expect(0, 0, 0));
        assert_eq!(Descriptors::share(1_024, 2), expect(183, 60, 729));
        assert_eq!(Descriptors::share(20_000, 2), expect(3_072, 1_024, 15_852));
    }

    proptest! {
        #[test]
        fn some_are_always_kept_free(limit: u32, pus in 1usize..5_000) {
            let limit = limit as usize;
            let shared = Descriptors::share(limit, pus);
            prop_assert!(shared.proc + shared.held + shared.counting <= limit.saturating_sub(SPARE));
        }
    }
}
