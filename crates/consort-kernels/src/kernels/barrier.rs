//! `barrier`: threads that meet after uneven work.
//!
//! Pitfalls: a kernel takes part from its first unit until it is dropped, and
//! the others wait for it all that time; drop it as soon as it is done.

use super::spin::spin;
use crate::kernel::{
    ExpectedClass, Kernel, KernelBuilder, KernelEntry, KernelSetup, make_builders,
};
use crate::tally::{PERIOD, UnitTally};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "barrier",
    summary: "threads that meet at a barrier after one to four shares of work, by turns",
    stresses: "synchronisation, waiting for the slowest",
    class: ExpectedClass::Blocked,
    seats: builders,
};

/// Steps of work in one share.
const STEPS: u64 = 20_000;

/// A barrier that threads may join and leave between meetings, which the
/// standard library's cannot.
#[derive(Debug, Default)]
struct DynamicBarrier {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct BarrierState {
    members: usize,
    waiting: usize,
    generation: u64,
}

impl BarrierState {
    /// Ends the meeting if all members wait.
    fn close_if_complete(&mut self, changed: &Condvar) {
        if self.waiting == self.members {
            self.waiting = 0;
            self.generation += 1;
            changed.notify_all();
        }
    }
}

impl DynamicBarrier {
    fn state(&self) -> MutexGuard<'_, BarrierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self) {
        self.state().members += 1;
    }

    fn leave(&self) {
        let mut state = self.state();
        state.members -= 1;
        state.close_if_complete(&self.changed);
    }

    fn meet(&self) {
        let mut state = self.state();
        let generation = state.generation;
        state.waiting += 1;
        state.close_if_complete(&self.changed);
        while state.generation == generation {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[derive(Debug)]
struct Barrier {
    meeting: Arc<DynamicBarrier>,
    joined: bool,
    index: u64,
    tally: UnitTally,
}

fn builders(setup: &KernelSetup) -> Vec<KernelBuilder> {
    let meeting = Arc::new(DynamicBarrier::default());
    make_builders(setup, move |index| {
        Ok(Barrier {
            meeting: Arc::clone(&meeting),
            joined: false,
            index: u64::try_from(index).unwrap_or(0),
            tally: UnitTally::default(),
        })
    })
}

/// In round `seed` thread `index` has `(index + seed) mod 4 + 1` shares.
fn shares(index: u64, seed: u64) -> u64 {
    spin(index, STEPS * ((index + seed) % 4 + 1))
}

impl Kernel for Barrier {
    fn work(&mut self, units: u64) -> u64 {
        if units > 0 && !self.joined {
            self.meeting.join();
            self.joined = true;
        }
        for _ in 0..units {
            self.tally.add(shares(self.index, self.tally.seed(PERIOD)));
            self.meeting.meet();
        }
        self.tally.sum()
    }

    /// The work repeats every four rounds, which divide [`PERIOD`].
    fn expected(&self) -> u64 {
        self.tally.expected(4, |seed| shares(self.index, seed))
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        if self.joined {
            self.meeting.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn who_leaves_does_not_hold_up_the_others() {
        let setup = KernelSetup {
            threads: 3,
            ..KernelSetup::default()
        };
        let runs: Vec<_> = builders(&setup)
            .into_iter()
            .zip([1, 5, 9])
            .map(|(seat, units)| {
                thread::spawn(move || {
                    let mut kernel = seat().unwrap();
                    assert_eq!(kernel.work(units), kernel.expected());
                })
            })
            .collect();
        for run in runs {
            run.join().unwrap();
        }
    }
}
