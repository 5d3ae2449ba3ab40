//! The clock of a run: beginnings of the run and of its quantum, and the quantum's length.

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Longest time between two readings of the rings: code of short-lived processes must be fetched in
/// time, and even the smallest ring holds the records of that long. The events' descriptors are not
/// polled, because a descriptor whose thread has exited reports a hang-up for ever.
const RINGS_EVERY: Duration = Duration::from_millis(100);
/// Number of records in one reading after which the next one comes sooner: a program that maps
/// thousands of pieces of code would fill the rings many times over.
const MANY_RECORDS: usize = 256;
/// Shortest time between two such readings.
const RINGS_SOON: Duration = Duration::from_millis(5);
/// Least ratio of that time to the CPU time of the reading. A program can map code as often as it
/// likes, so this limits the readings to a tenth of one CPU.
const PAUSE_PER_READING: u32 = 10;

/// Beginnings of the run and of the current quantum, and the length of quanta.
pub(super) struct QuantumClock {
    pub(super) start: Instant,
    quantum: Instant,
    /// Length of this quantum if the last plan wanted another than usual.
    pub(super) next_length: Option<Duration>,
    pub(super) pace: QuantumPace,
    /// CPU time of Consort's thread when the last turn began, ns.
    own_cpu_ns: u64,
    /// Longest time until the rings are to be read again.
    pub(super) pause_of_rings: Duration,
}

impl QuantumClock {
    /// The clock of a run that began at `start`, with quanta of this length.
    pub(super) fn new(start: Instant, now: Instant, length: Duration) -> Self {
        Self {
            start,
            quantum: now,
            next_length: None,
            pace: QuantumPace::new(length),
            own_cpu_ns: own_cpu_ns(),
            pause_of_rings: RINGS_EVERY,
        }
    }

    /// Notes the number of records that a reading of the rings returned, and its CPU time.
    pub(super) fn note_ring_read(&mut self, records: usize, cpu_ns: u64) {
        let paced = Duration::from_nanos(cpu_ns) * PAUSE_PER_READING;
        self.pause_of_rings = match records > MANY_RECORDS {
            true => paced.clamp(RINGS_SOON, RINGS_EVERY),
            false => RINGS_EVERY,
        };
    }

    /// Begins a turn; returns the end of its quantum, and a notice for the user. Stretches quanta
    /// that are too short for the time that a turn takes.
    pub(super) fn begin_turn(&mut self) -> (Instant, Option<String>) {
        let cpu_ns = own_cpu_ns();
        // CPU time, not wall-clock time: a host that is busy makes turns long, which longer quanta
        // would not change.
        let took = cpu_ns.saturating_sub(self.own_cpu_ns);
        self.own_cpu_ns = cpu_ns;
        let notice = self.pace.note_turn(Duration::from_nanos(took));
        let length = self.next_length.unwrap_or_else(|| self.pace.quantum());
        (self.quantum + length, notice)
    }

    /// Ends the quantum; returns its length, and a notice for the user. There is no notice for a
    /// quantum whose length the policy chose, or that was cut.
    pub(super) fn end_quantum(&mut self, now: Instant, cut: bool) -> (Duration, Option<String>) {
        let interval = now - self.quantum;
        self.quantum = now;
        // A quantum whose length the policy chose, or that was cut, says nothing about the host.
        let requested = self.next_length.take().is_none() && !cut;
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

// A turn that takes long compared with its quantum would take the CPUs away from the managed
// threads. So the quantum is stretched until turns take at most a fifth of one CPU. Lateness
// because the host is busy is only reported, because longer quanta would not help.

/// Least ratio of the length of a quantum to the CPU time of a turn.
const QUANTUM_PER_TURN: u32 = 5;
/// Number of turns over which the mean reaches back, so that one expensive turn changes little.
const MEMORY: u32 = 16;
/// Number of turns that are not judged: the first ones open files and events that later ones only
/// read.
const WARM_UP: u64 = 16;
/// Ratio to the planned length beyond which quanta are late.
const LATE: f64 = 2.0;
/// Least delay of one turn that counts as lateness.
const LATE_BY: Duration = Duration::from_millis(100);

/// The length of quanta: the requested one, stretched if it is too short for this host.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuantumPace {
    pub(super) requested: Duration,
    /// Mean CPU time of a turn.
    turn: Duration,
    turns: u64,
    /// Longest quantum that turns made necessary.
    stretched: Option<Duration>,
    spent: Duration,
    /// Consort's own CPU time within the quanta.
    own: Duration,
    quanta: u32,
    has_reported_lateness: bool,
}

impl QuantumPace {
    pub(super) fn new(requested: Duration) -> Self {
        Self {
            requested,
            turn: Duration::ZERO,
            turns: 0,
            stretched: None,
            spent: Duration::ZERO,
            own: Duration::ZERO,
            quanta: 0,
            has_reported_lateness: false,
        }
    }

    pub(super) fn quantum(&self) -> Duration {
        if self.turns < WARM_UP {
            return self.requested;
        }
        self.requested.max(self.turn * QUANTUM_PER_TURN)
    }

    /// Takes in the CPU time of a turn; returns a notice, once, when quanta are stretched.
    pub(super) fn note_turn(&mut self, cpu: Duration) -> Option<String> {
        self.turns += 1;
        // The first turns count fully, until there are enough for a running mean.
        let weight = MEMORY.min(u32::try_from(self.turns).unwrap_or(MEMORY));
        self.turn = (self.turn * (weight - 1) + cpu) / weight;
        let quantum = self.quantum();
        if quantum <= self.requested {
            return None;
        }
        let reported = self.stretched.replace(quantum).is_some();
        (!reported).then(|| {
            format!(
                "a turn takes {:.1} ms of CPU time, so quanta were stretched from {:.1} ms to {:.1} ms \
                 and as turns need; ask for longer ones",
                millis(self.turn),
                millis(self.requested),
                millis(quantum)
            )
        })
    }

    /// Takes in the length of a quantum and Consort's own CPU time within; returns a notice, once,
    /// when it was much longer than planned: plans are then older than they should be.
    pub(super) fn note_quantum(&mut self, length: Duration, own: Duration) -> Option<String> {
        self.spent += length;
        self.own += own;
        self.quanta += 1;
        let planned = self.quantum();
        let is_late =
            length > planned + LATE_BY && length.as_secs_f64() > LATE * planned.as_secs_f64();
        if !is_late || self.has_reported_lateness {
            return None;
        }
        self.has_reported_lateness = true;
        let (came, due) = (millis(length), millis(planned));
        // If half of the delay is CPU time of Consort itself, the host is not the cause.
        let why = match own > length.saturating_sub(planned) / 2 {
            true => format!(
                "it takes {:.0} ms of CPU time; ask for longer ones",
                millis(own)
            ),
            false => "this host is too busy to keep to quanta, or Consort was stopped".to_owned(),
        };
        Some(format!(
            "a turn came after {came:.0} ms instead of {due:.0} ms: {why}"
        ))
    }

    /// Mean length of the quanta, ms; none before the first.
    pub(super) fn mean_ms(&self) -> Option<f64> {
        (self.quanta > 0).then(|| millis(self.spent) / f64::from(self.quanta))
    }

    /// Warning that quanta were much longer than planned over the run, if they were.
    pub(super) fn lateness(&self) -> Option<String> {
        let planned = self
            .stretched
            .map_or(self.requested, |s| s.max(self.requested));
        let mean_ms = self.mean_ms()?;
        let is_late = u64::from(self.quanta) > WARM_UP && mean_ms > LATE * millis(planned);
        let planned_ms = millis(planned);
        let own_ms = millis(self.own) / f64::from(self.quanta);
        let why = match own_ms > (mean_ms - planned_ms) / 2.0 {
            true => format!("turns take {own_ms:.1} ms of CPU time; ask for longer ones"),
            false => "this host is too busy to keep to them".to_owned(),
        };
        is_late.then(|| {
            format!("quanta took {mean_ms:.1} ms on average instead of {planned_ms:.1} ms: {why}")
        })
    }
}

fn millis(time: Duration) -> f64 {
    1e3 * time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_rings_are_read_sooner() {
        let now = Instant::now();
        let mut clock = QuantumClock::new(now, now, Duration::from_secs(1));
        let mut pause_after = |records, cpu_ms: u64| {
            clock.note_ring_read(records, cpu_ms * 1_000_000);
            clock.pause_of_rings
        };
        assert_eq!(pause_after(MANY_RECORDS, 0), RINGS_EVERY);
        assert_eq!(pause_after(MANY_RECORDS + 1, 0), RINGS_SOON);
        assert_eq!(pause_after(1_000, 2), Duration::from_millis(20));
        assert_eq!(pause_after(100_000, 300), RINGS_EVERY);
    }
}

#[cfg(test)]
mod pace_tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(turns: u32, cpu: Duration) -> (QuantumPace, Vec<String>) {
        let mut pace = QuantumPace::new(4 * MS);
        let reported = (0..turns).filter_map(|_| pace.note_turn(cpu)).collect();
        (pace, reported)
    }

    #[test]
    fn cheap_turns_leave_the_quantum() {
        let (pace, reported) = after(100, MS / 2);
        assert_eq!((pace.quantum(), reported.len()), (4 * MS, 0));
    }

    #[test]
    fn expensive_turns_stretch_the_quantum() {
        let (pace, reported) = after(100, 2 * MS);
        assert_eq!(pace.quantum(), 10 * MS);
        assert_eq!(
            reported,
            [
                "a turn takes 2.0 ms of CPU time, so quanta were stretched from 4.0 ms to 10.0 ms \
              and as turns need; ask for longer ones"
            ]
        );
    }

    #[test]
    fn the_first_turns_are_not_judged() {
        assert_eq!(after(10, 20 * MS).0.quantum(), 4 * MS);
    }

    #[test]
    fn busy_host_is_reported() {
        let (mut pace, _) = after(20, MS / 10);
        (0..20).for_each(|_| assert_eq!(pace.note_quantum(7 * MS, MS), None));
        assert_eq!(pace.lateness(), None);
        (0..20).for_each(|_| assert_eq!(pace.note_quantum(13 * MS, MS), None));
        assert_eq!(
            pace.lateness().as_deref(),
            Some(
                "quanta took 10.0 ms on average instead of 4.0 ms: this host is too busy to keep to them"
            )
        );
    }

    #[test]
    fn only_first_late_turn_is_reported() {
        let mut pace = QuantumPace::new(500 * MS);
        assert_eq!(pace.note_quantum(600 * MS, MS), None);
        let reported = pace.note_quantum(6000 * MS, MS).unwrap();
        assert!(
            reported.starts_with("a turn came after 6000 ms instead of 500 ms"),
            "{reported}"
        );
        assert_eq!(pace.note_quantum(6000 * MS, MS), None);
    }

    #[test]
    fn host_is_not_blamed_for_own_work() {
        let mut pace = QuantumPace::new(500 * MS);
        for _ in 0..20 {
            if let Some(notice) = pace.note_quantum(6000 * MS, 5000 * MS) {
                assert!(notice.contains("it takes 5000 ms of CPU time"), "{notice}");
            }
        }
        let lateness = pace.lateness().unwrap();
        assert!(lateness.contains("turns take 5000.0 ms"), "{lateness}");
    }
}
