//! The clock of a run: when it and its quantum began, and how long the quantum is.

use super::pace::Pace;
use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// When the run and the current quantum began, and what comes next.
pub(super) struct Clock {
    start: Instant,
    quantum: Instant,
    /// Length of this quantum where the last plan wanted another.
    next: Option<Duration>,
    pace: Pace,
    /// CPU time of Consort's own when the last turn began, ns.
    own_cpu_ns: u64,
}

impl Clock {
    /// A run that has begun, with quanta of a length.
    pub(super) fn new(start: Instant, now: Instant, length: Duration) -> Self {
        Self {
            start,
            quantum: now,
            next: None,
            pace: Pace::new(length),
            own_cpu_ns: own_cpu_ns(),
        }
    }

    /// When the run began.
    pub(super) fn start(&self) -> Instant {
        self.start
    }

    /// How quanta are kept.
    pub(super) fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Asks for another length of quanta from now on.
    pub(super) fn ask(&mut self, length: Duration) {
        self.pace.ask(length);
    }

    /// Notes the length that a plan wants of the next quantum, if it wants another.
    pub(super) fn plan(&mut self, length: Option<Duration>) {
        self.next = length;
    }

    /// Begins a turn: when its quantum ends, and what the user should know. Stretches quanta that
    /// are too short for what a turn takes.
    pub(super) fn begin_turn(&mut self) -> (Instant, Option<String>) {
        let cpu_ns = own_cpu_ns();
        let took = cpu_ns.saturating_sub(self.own_cpu_ns);
        self.own_cpu_ns = cpu_ns;
        let notice = self.pace.turn_took(Duration::from_nanos(took));
        let length = self.next.unwrap_or_else(|| self.pace.quantum());
        (self.quantum + length, notice)
    }

    /// Ends the quantum: its length, and what the user should know. One that the policy chose, or
    /// that was cut, was not asked for.
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
