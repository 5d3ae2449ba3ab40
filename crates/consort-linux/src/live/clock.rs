//! The clock of a run: beginnings of the run and of its quantum, and the quantum's length.

use super::pace::Pace;
use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Beginnings of the run and of the current quantum, and the length of quanta.
pub(super) struct Clock {
    start: Instant,
    quantum: Instant,
    /// Length of this quantum where the last plan wanted another than usual.
    next: Option<Duration>,
    pace: Pace,
    /// CPU time of Consort's thread when the last turn began, ns.
    own_cpu_ns: u64,
}

impl Clock {
    /// The clock of a run that began at `start`, with quanta of this length.
    pub(super) fn new(start: Instant, now: Instant, length: Duration) -> Self {
        Self {
            start,
            quantum: now,
            next: None,
            pace: Pace::new(length),
            own_cpu_ns: own_cpu_ns(),
        }
    }

    /// Beginning of the run.
    pub(super) fn start(&self) -> Instant {
        self.start
    }

    /// Length of quanta, asked for and kept.
    pub(super) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Sets the length of quanta from now on.
    pub(super) fn ask(&mut self, length: Duration) {
        self.pace.ask(length);
    }

    /// Sets the length of the next quantum alone, if a plan wants another than usual.
    pub(super) fn plan(&mut self, length: Option<Duration>) {
        self.next = length;
    }

    /// Begins a turn; returns the end of its quantum, and a notice for the user. Stretches quanta
    /// that are too short for the time that a turn takes.
    pub(super) fn begin_turn(&mut self) -> (Instant, Option<String>) {
        let cpu_ns = own_cpu_ns();
        let took = cpu_ns.saturating_sub(self.own_cpu_ns);
        self.own_cpu_ns = cpu_ns;
        let notice = self.pace.turn_took(Duration::from_nanos(took));
        let length = self.next.unwrap_or_else(|| self.pace.quantum());
        (self.quantum + length, notice)
    }

    /// Ends the quantum; returns its length, and a notice for the user. There is no notice for a
    /// quantum whose length the policy chose, or that was cut.
    pub(super) fn end_quantum(&mut self, now: Instant, cut: bool) -> (Duration, Option<String>) {
        let interval = now - self.quantum;
        self.quantum = now;
        let asked = self.next.take().is_none() && !cut;
        let notice = asked.then(|| self.pace.quantum_was(interval));
        (interval, notice.flatten())
    }
}

/// CPU time of the calling thread, ns.
pub(super) fn own_cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.map_or(0, |time| nanos(Duration::from(time)))
}

/// Whole nanoseconds.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
