//! `lock`, `barrier` and `sleeper`: kernels that are about waiting.

use crate::kernel::{
    ExpectedClass, Kernel, KernelBuilder, KernelEntry, KernelSetup, make_builders,
};
use crate::opaque;
use crate::tally::{PERIOD, UnitTally};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// `lock`: threads that fight for one mutex.
///
/// Each thread owns a slot of a ledger behind the mutex, next to the ledger's total. The thread that
/// holds the mutex adds to both and compares them; if mutual exclusion were lost, checksums would
/// be wrong.
pub(crate) const LOCK: KernelEntry = KernelEntry {
    name: "lock",
    summary: "threads that fight for one mutex, a short work inside, a shorter one outside",
    stresses: "synchronisation, lines that move between cores",
    class: ExpectedClass::Blocked,
    builders: LockKernel::builders,
};

/// `barrier`: threads that meet after uneven work.
///
/// Pitfall: a kernel takes part from its first unit until it is dropped, and the others wait for it
/// all that time; drop it as soon as it is done.
pub(crate) const BARRIER: KernelEntry = KernelEntry {
    name: "barrier",
    summary: "threads that meet at a barrier after one to four shares of work, by turns",
    stresses: "synchronisation, waiting for the slowest",
    class: ExpectedClass::Blocked,
    builders: Barrier::builders,
};

/// `sleeper`: a short work, a long sleep.
pub(crate) const SLEEPER: KernelEntry = KernelEntry {
    name: "sleeper",
    summary: "some 50 microseconds of integer work, then 5 ms of sleep",
    stresses: "wake-ups",
    class: ExpectedClass::Blocked,
    builders: |setup| make_builders(setup, |_| Ok(Sleeper::default())),
};

/// A dependent chain of `steps` multiplications.
fn spin(seed: u64, steps: u64) -> u64 {
    (0..steps).fold(seed, |x, step| {
        opaque::int(x).wrapping_mul(6_364_136_223_846_793_005) ^ step
    })
}

/// Number of times that a unit of `lock` takes the mutex.
const ROUNDS: u64 = 16;
/// Steps of work inside the mutex; outside it is half as many.
const STEPS_INSIDE: u64 = 400;

#[derive(Debug)]
struct LockLedger {
    total: u64,
    slots: Vec<u64>,
}

impl LockLedger {
    /// Adds to one slot and the total; 0 if they still agree.
    fn add(&mut self, slot: usize, amount: u64) -> u64 {
        self.total = self.total.wrapping_add(amount);
        self.slots[slot] = self.slots[slot].wrapping_add(amount);
        let sum = self
            .slots
            .iter()
            .fold(0, |sum: u64, s| sum.wrapping_add(*s));
        self.total ^ sum
    }
}

#[derive(Debug)]
struct LockKernel {
    ledger: Arc<Mutex<LockLedger>>,
    slot: usize,
    tally: UnitTally,
}

impl LockKernel {
    fn builders(setup: &KernelSetup) -> Vec<KernelBuilder> {
        let ledger = Arc::new(Mutex::new(LockLedger {
            total: 0,
            slots: vec![0; setup.threads.max(1)],
        }));
        make_builders(setup, move |slot| {
            Ok(Self {
                ledger: Arc::clone(&ledger),
                slot,
                tally: UnitTally::default(),
            })
        })
    }

    /// One turn with the mutex: the work inside, plus 0 if the ledger still adds up.
    fn run_turn(&self, seed: u64) -> u64 {
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = spin(seed, STEPS_INSIDE);
        inside.wrapping_add(ledger.add(self.slot, inside))
    }
}

fn lock_unit(seed: u64, turn: impl Fn(u64) -> u64) -> u64 {
    (0..ROUNDS).fold(seed, |x, _| spin(turn(x), STEPS_INSIDE / 2))
}

impl Kernel for LockKernel {
    fn work(&mut self, units: u64) -> u64 {
        for _ in 0..units {
            let seed = self.tally.seed(PERIOD);
            let result = lock_unit(seed, |x| self.run_turn(x));
            self.tally.add(result);
        }
        self.tally.sum()
    }

    fn expected(&self) -> u64 {
        self.tally
            .expected(PERIOD, |seed| lock_unit(seed, |x| spin(x, STEPS_INSIDE)))
    }
}

/// Steps of work in one share of `barrier`.
const SHARE_STEPS: u64 = 20_000;

/// A barrier that threads may join and leave between meetings, which the standard library's cannot.
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
        // A generation per meeting: a thread that is early for the next one must not wake up now.
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

impl Barrier {
    fn builders(setup: &KernelSetup) -> Vec<KernelBuilder> {
        let meeting = Arc::new(DynamicBarrier::default());
        make_builders(setup, move |index| {
            Ok(Self {
                meeting: Arc::clone(&meeting),
                joined: false,
                index: u64::try_from(index).unwrap_or(0),
                tally: UnitTally::default(),
            })
        })
    }

    /// In round `seed` thread `index` has `(index + seed) mod 4 + 1` shares.
    fn spin_shares(&self, seed: u64) -> u64 {
        spin(self.index, SHARE_STEPS * ((self.index + seed) % 4 + 1))
    }
}

impl Kernel for Barrier {
    fn work(&mut self, units: u64) -> u64 {
        if units > 0 && !self.joined {
            self.meeting.join();
            self.joined = true;
        }
        for _ in 0..units {
            let result = self.spin_shares(self.tally.seed(PERIOD));
            self.tally.add(result);
            self.meeting.meet();
        }
        self.tally.sum()
    }

    /// The work repeats every four rounds, which divide [`PERIOD`].
    fn expected(&self) -> u64 {
        self.tally.expected(4, |seed| self.spin_shares(seed))
    }
}

impl Drop for Barrier {
    fn drop(&mut self) {
        if self.joined {
            self.meeting.leave();
        }
    }
}

const SLEEP: Duration = Duration::from_millis(5);
/// Steps of work between sleeps.
const AWAKE_STEPS: u64 = 20_000;

#[derive(Debug, Default)]
struct Sleeper {
    tally: UnitTally,
}

impl Kernel for Sleeper {
    fn work(&mut self, units: u64) -> u64 {
        for _ in 0..units {
            self.tally.add(spin(self.tally.seed(PERIOD), AWAKE_STEPS));
            thread::sleep(SLEEP);
        }
        self.tally.sum()
    }

    fn expected(&self) -> u64 {
        self.tally.expected(PERIOD, |seed| spin(seed, AWAKE_STEPS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_ledger_is_noticed() {
        let mut ledger = LockLedger {
            total: 0,
            slots: vec![0; 3],
        };
        assert_eq!(ledger.add(1, 5), 0);
        ledger.total += 1;
        assert_ne!(ledger.add(2, 7), 0);
    }

    #[test]
    fn leaving_thread_does_not_delay_the_others() {
        let setup = KernelSetup {
            threads: 3,
            ..KernelSetup::default()
        };
        let runs: Vec<_> = Barrier::builders(&setup)
            .into_iter()
            .zip([1, 5, 9])
            .map(|(build, units)| {
                thread::spawn(move || {
                    let mut kernel = build().unwrap();
                    assert_eq!(kernel.work(units), kernel.expected());
                })
            })
            .collect();
        for run in runs {
            run.join().unwrap();
        }
    }
}
