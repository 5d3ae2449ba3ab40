//! `sleeper`: a short work, a long sleep.

use super::spin::spin;
use crate::kernel::{Class, Entry, Kernel, seats_of};
use crate::tally::{PERIOD, Tally};
use std::thread;
use std::time::Duration;

pub(crate) const ENTRY: Entry = Entry {
    name: "sleeper",
    summary: "some 50 microseconds of integer work, then 5 ms of sleep",
    stresses: "wake-ups",
    class: Class::Blocked,
    seats: |setup| seats_of(setup, |_| Ok(Sleeper::default())),
};

const SLEEP: Duration = Duration::from_millis(5);
const STEPS: u64 = 20_000;

#[derive(Debug, Default)]
struct Sleeper {
    tally: Tally,
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
