//! `lock`: threads that fight for one mutex.
//!
//! Each thread owns a slot of a ledger behind the mutex, beside the ledger's
//! total. Whoever holds the mutex adds to both and sees whether they agree; if
//! mutual exclusion were lost, checksums would be wrong.

use super::spin::spin;
use crate::kernel::{ExpectedClass, Kernel, KernelBuilder, KernelEntry, KernelSetup};
use crate::tally::{PERIOD, UnitTally};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "lock",
    summary: "threads that fight for one mutex, a short work inside, a shorter one outside",
    stresses: "synchronisation, lines that move between cores",
    class: ExpectedClass::Blocked,
    seats: builders,
};

/// Number of times that a unit takes the mutex.
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

fn builders(setup: &KernelSetup) -> Vec<KernelBuilder> {
    let ledger = Arc::new(Mutex::new(LockLedger {
        total: 0,
        slots: vec![0; setup.threads.max(1)],
    }));
    crate::kernel::make_builders(setup, move |slot| {
        Ok(LockKernel {
            ledger: Arc::clone(&ledger),
            slot,
            tally: UnitTally::default(),
        })
    })
}

/// One turn with the mutex: the work inside, and what the ledger found wrong.
fn run_turn(ledger: &Mutex<LockLedger>, slot: usize, seed: u64) -> u64 {
    let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    let inside = spin(seed, STEPS_INSIDE);
    inside.wrapping_add(ledger.add(slot, inside))
}

fn unit(seed: u64, mut turn: impl FnMut(u64) -> u64) -> u64 {
    (0..ROUNDS).fold(seed, |x, _| spin(turn(x), STEPS_INSIDE / 2))
}

impl Kernel for LockKernel {
    fn work(&mut self, units: u64) -> u64 {
        for _ in 0..units {
            let seed = self.tally.seed(PERIOD);
            self.tally
                .add(unit(seed, |x| run_turn(&self.ledger, self.slot, x)));
        }
        self.tally.sum()
    }

    fn expected(&self) -> u64 {
        let alone = |seed| unit(seed, |x| spin(x, STEPS_INSIDE));
        self.tally.expected(PERIOD, alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_that_does_not_add_up_is_noticed() {
        let mut ledger = LockLedger {
            total: 0,
            slots: vec![0; 3],
        };
        assert_eq!(ledger.add(1, 5), 0);
        ledger.total += 1;
        assert_ne!(ledger.add(2, 7), 0);
    }
}
