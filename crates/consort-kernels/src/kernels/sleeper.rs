//! `sleeper`: a short work, a long sleep.

use super::spin::spin;
use crate::kernel::{ExpectedClass, Kernel, KernelEntry, make_builders};
use crate::tally::{PERIOD, UnitTally};
use std::thread;
use std::time::Duration;

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "sleeper",
    summary: "some 50 microseconds of integer work, then 5 ms of sleep",
    stresses: "wake-ups",
    class: ExpectedClass::Blocked,
    seats: |setup| make_builders(setup, |_| Ok(Sleeper::default())),
};

const SLEEP: Duration = Duration::from_millis(5);
const STEPS: u64 = 20_000;

#[derive(Debug, Default)]
struct Sleeper {
    tally: UnitTally,
}

fn unit(seed: u64) -> u64 {
    spin(seed, STEPS)
}

impl Kernel for Sleeper {
    fn work(&mut self, units: u64) -> u64 {
        for _ in 0..units {
            self.tally.add(unit(self.tally.seed(PERIOD)));
            thread::sleep(SLEEP);
        }
        self.tally.sum()
    }

    fn expected(&self) -> u64 {
        self.tally.expected(PERIOD, unit)
    }
}
