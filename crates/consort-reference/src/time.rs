//! Time in femtoseconds, which all clocks of a machine share.

pub(crate) type Femtos = u64;

/// Femtoseconds of so many nanoseconds.
pub(crate) fn from_ns(ns: f64) -> Femtos {
    (ns * 1e6).round() as Femtos
}

/// A core's clock: cycles and femtoseconds into each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoreClock {
    period: Femtos,
}

impl CoreClock {
    /// The clock of a frequency.
    pub(crate) fn new(ghz: f64) -> Self {
        Self {
            period: from_ns(1.0 / ghz).max(1),
        }
    }

    /// Start of a cycle.
    pub(crate) fn start(self, cycle: u64) -> Femtos {
        cycle * self.period
    }

    /// The first cycle that begins at a time or after it.
    pub(crate) fn cycle(self, time: Femtos) -> u64 {
        time.div_ceil(self.period)
    }

    /// Time of so many cycles.
    pub(crate) fn span(self, cycles: f64) -> Femtos {
        (cycles * self.period as f64).round() as Femtos
    }
}
