//! The CPU that Consort's thread runs on while it nudges: the one of the thread that it nudges.
//!
//! A program sees a narrow mask for as long as Consort takes from one write to the next. Two things
//! made that long. To move a thread that *runs* on another CPU, the kernel lets the writer sleep
//! until that CPU has stopped the thread, and the writer then waits for its turn. And a writer that
//! has used up its slice is preempted at the next tick, or by the next thread that wakes up.
//!
//! On the CPU of its target, Consort's thread has displaced it. A thread that waits is moved by the
//! writer itself, without sleeping, to a CPU on which it cannot displace the writer. A fair thread
//! that has just been chosen also has its slice before it: so it sleeps for a moment first, unless it
//! has real-time priority.
//!
//! Pitfall: the CPU is the calling thread's, which must go back by [`CallerPlacement::restore_own_mask`] before it
//! starts a process or another thread.

use super::affinity::{self, Mask};
use super::host::{AllowedPusCache, Host};
use super::original_mask::OriginalMask;
use consort_core::{PuId, PuSet};
use nix::libc;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;
use std::time::Duration;

/// CPU time after which a fair thread no longer counts as just chosen: half of its slice. The kernel
/// finds that a slice is over within the first write of a nudge, and then preempts the writer
/// before the second.
const FRESH: Duration = Duration::from_micros(150);

/// Position of the calling thread.
#[derive(Debug, Default)]
pub(crate) struct CallerPlacement {
    /// The thread's own mask, when it was last read.
    own: Option<OriginalMask>,
    /// The CPU that the thread is restricted to; `None` while it has its own mask.
    at: Option<PuId>,
    /// The thread's CPU time when it was last chosen after a sleep; `None` if it need not sleep.
    chosen: Option<Duration>,
}

impl CallerPlacement {
    /// Moves the calling thread to a CPU. It stays where it is if its cpuset lacks that CPU.
    pub(crate) fn move_to_pu(&mut self, host: &Host, pu: PuId) {
        let tid = gettid().as_raw().cast_unsigned();
        if self.at.is_none() {
            let Ok(now) = affinity::get(tid) else { return };
            if self.own.as_ref().is_none_or(|own| own.pus != now) {
                let allowed = AllowedPusCache::new(host).read_pus(host, std::process::id(), tid);
                // Without its cpuset, it is not known what mask to go back to.
                let Ok(allowed) = allowed else { return };
                self.own = Some(OriginalMask::new(now, &allowed));
            }
            self.chosen = (!has_real_time_priority()).then_some(Duration::ZERO);
        }
        let is_there = self.at == Some(pu);
        let moved = is_there || affinity::set(tid, &Mask::Only(PuSet::from(pu))).is_ok();
        if moved {
            self.at = Some(pu);
        }
        if self.chosen.is_some() && (!is_there || !self.has_fresh_slice()) {
            std::thread::sleep(Duration::from_nanos(1));
            self.chosen = Some(cpu_time());
        }
    }

    /// Returns true if the calling thread has most of its slice before it.
    pub(crate) fn has_fresh_slice(&self) -> bool {
        self.chosen
            .is_none_or(|chosen| cpu_time().saturating_sub(chosen) <= FRESH)
    }

    /// Gives the calling thread its own mask back.
    pub(crate) fn restore_own_mask(&mut self) {
        let tid = gettid().as_raw().cast_unsigned();
        if self.at.take().is_some()
            && let Some(own) = &self.own
            && let Err(errno) =
                affinity::set(tid, &own.mask()).or_else(|_| affinity::set(tid, &Mask::Open))
        {
            tracing::warn!(%errno, "consort keeps running on the CPU of the last nudge");
        }
    }
}

fn has_real_time_priority() -> bool {
    // SAFETY: the call takes no pointers; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    matches!(
        policy & !libc::SCHED_RESET_ON_FORK,
        libc::SCHED_FIFO | libc::SCHED_RR
    )
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stance_is_on_the_cpu_asked_for_until_it_is_left() {
        let checked = std::thread::spawn(|| {
            let tid = gettid().as_raw().cast_unsigned();
            let before = affinity::get(tid).unwrap();
            let mut stance = CallerPlacement::default();
            for pu in before.iter() {
                stance.move_to_pu(&Host::real(), pu);
                assert_eq!(affinity::get(tid).unwrap(), PuSet::from(pu));
                assert_eq!(nix::sched::sched_getcpu().unwrap(), pu.0 as usize);
            }
            stance.restore_own_mask();
            assert_eq!(affinity::get(tid).unwrap(), before);
        });
        checked.join().unwrap();
    }

    #[test]
    fn cpu_outside_the_cpuset_leaves_the_mask_alone() {
        let checked = std::thread::spawn(|| {
            let tid = gettid().as_raw().cast_unsigned();
            let before = affinity::get(tid).unwrap();
            let mut stance = CallerPlacement::default();
            stance.move_to_pu(&Host::real(), PuId(4_000));
            assert_eq!(affinity::get(tid).unwrap(), before);
            stance.restore_own_mask();
            assert_eq!(affinity::get(tid).unwrap(), before);
        });
        checked.join().unwrap();
    }
}
