//! The clock of a run: beginnings of the run and of its quantum, and the quantum's length.

use super::pace::QuantumPace;
use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Longest time between two readings of the rings: code of short-lived processes must be fetched in
/// time, and even the smallest ring holds the records of that long. Their descriptors are not
/// polled, since those of threads that have exited report a hang-up for ever.
const RINGS_EVERY: Duration = Duration::from_millis(100);
/// Number of records in one reading after which the next one comes sooner: a program that maps
/// thousands of pieces of code would fill the rings many times over.
const MANY_RECORDS: usize = 256;
/// Shortest time between two such readings.
const RINGS_SOON: Duration = Duration::from_millis(5);
/// Least ratio of that time to the CPU time of the reading: what programs do at will takes a tenth
/// of one PU at most.
const PAUSE_PER_READING: u32 = 10;

/// Beginnings of the run and of the current quantum, and the length of quanta.
pub(super) struct QuantumClock {
    start: Instant,
    quantum: Instant,
    /// Length of this quantum where the last plan wanted another than usual.
    next: Option<Duration>,
    pace: QuantumPace,
    /// CPU time of Consort's thread when the last turn began, ns.
    own_cpu_ns: u64,
    /// Time until the rings are to be read again.
    pause_of_rings: Duration,
}

impl QuantumClock {
    /// The clock of a run that began at `start`, with quanta of this length.
    pub(super) fn new(start: Instant, now: Instant, length: Duration) -> Self {
        Self {
            start,
            quantum: now,
            next: None,
            pace: QuantumPace::new(length),
            own_cpu_ns: own_cpu_ns(),
            pause_of_rings: RINGS_EVERY,
        }
    }

    /// Longest time until the rings are to be read again.
    pub(super) fn pause_of_rings(&self) -> Duration {
        self.pause_of_rings
    }

    /// Takes in that a reading of the rings gave so many records and took so much CPU time.
    pub(super) fn note_ring_read(&mut self, records: usize, cpu_ns: u64) {
        let paced = Duration::from_nanos(cpu_ns) * PAUSE_PER_READING;
        self.pause_of_rings = match records > MANY_RECORDS {
            true => paced.clamp(RINGS_SOON, RINGS_EVERY),
            false => RINGS_EVERY,
        };
    }

    pub(super) fn start(&self) -> Instant {
        self.start
    }

    /// Length of quanta, asked for and kept.
    pub(super) fn pace(&self) -> &QuantumPace {
        &self.pace
    }

    pub(super) fn set_quantum(&mut self, length: Duration) {
        self.pace.set_quantum(length);
    }

    /// Sets the length of the next quantum alone, if a plan wants another than usual.
    pub(super) fn set_next_quantum(&mut self, length: Option<Duration>) {
        self.next = length;
    }

    /// Begins a turn; returns the end of its quantum, and a notice for the user. Stretches quanta
    /// that are too short for the time that a turn takes.
    pub(super) fn begin_turn(&mut self) -> (Instant, Option<String>) {
        let cpu_ns = own_cpu_ns();
        let took = cpu_ns.saturating_sub(self.own_cpu_ns);
        self.own_cpu_ns = cpu_ns;
        let notice = self.pace.note_turn(Duration::from_nanos(took));
        let length = self.next.unwrap_or_else(|| self.pace.quantum());
        (self.quantum + length, notice)
    }

    /// Ends the quantum; returns its length, and a notice for the user. There is no notice for a
    /// quantum whose length the policy chose, or that was cut.
    pub(super) fn end_quantum(&mut self, now: Instant, cut: bool) -> (Duration, Option<String>) {
        let interval = now - self.quantum;
        self.quantum = now;
        let requested = self.next.take().is_none() && !cut;
        let own_ns = own_cpu_ns().saturating_sub(self.own_cpu_ns);
        let own = Duration::from_nanos(own_ns);
        let notice = requested.then(|| self.pace.note_quantum(interval, own));
        (interval, notice.flatten())
    }
}

pub(super) fn own_cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.map_or(0, |time| nanos(Duration::from(time)))
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_rings_are_read_sooner_if_that_is_cheap() {
        let now = Instant::now();
        let mut clock = QuantumClock::new(now, now, Duration::from_secs(1));
        let mut pause_after = |records, cpu_ms: u64| {
            clock.note_ring_read(records, cpu_ms * 1_000_000);
            clock.pause_of_rings()
        };
        assert_eq!(pause_after(MANY_RECORDS, 0), RINGS_EVERY);
        assert_eq!(pause_after(MANY_RECORDS + 1, 0), RINGS_SOON);
        assert_eq!(pause_after(1_000, 2), Duration::from_millis(20));
        assert_eq!(pause_after(100_000, 300), RINGS_EVERY);
    }
}
