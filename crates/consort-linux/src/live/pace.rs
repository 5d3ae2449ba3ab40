//! The length of quanta, stretched where the one asked for is too short for this host.
//!
//! A turn that takes long against its quantum would take the PUs away from the managed threads. So
//! the quantum is stretched until turns take at most a fifth of one PU, and the user is told once.
//! Lateness, because the host is busy, is only reported: stretching does not help.

use std::time::Duration;

/// Least ratio of the length of a quantum to the CPU time of a turn.
const QUANTUM_PER_TURN: u32 = 5;
/// Number of turns over which the mean reaches back, so that one that is dear changes little.
const MEMORY: u32 = 16;
/// Number of turns that are not judged: the first ones open what later ones only read.
const WARM_UP: u64 = 16;
/// Ratio to the planned length beyond which quanta are late.
const LATE: f64 = 2.0;
/// Least delay of one turn that counts as lateness.
const LATE_BY: Duration = Duration::from_millis(100);

/// The length of quanta, as asked for and as turns need it.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuantumPace {
    requested: Duration,
    /// Mean CPU time of a turn.
    turn: Duration,
    turns: u64,
    /// Longest quantum that turns made necessary.
    stretched: Option<Duration>,
    spent: Duration,
    /// Consort's own CPU time within the quanta.
    own: Duration,
    quanta: u32,
    told_late: bool,
}

impl QuantumPace {
    /// A pace with quanta as asked for.
    pub(super) fn new(requested: Duration) -> Self {
        Self {
            requested,
            turn: Duration::ZERO,
            turns: 0,
            stretched: None,
            spent: Duration::ZERO,
            own: Duration::ZERO,
            quanta: 0,
            told_late: false,
        }
    }

    pub(super) fn set_quantum(&mut self, length: Duration) {
        self.requested = length;
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
        if !is_late || self.told_late {
            return None;
        }
        self.told_late = true;
        let (came, due) = (millis(length), millis(planned));
        // A host is not to blame for what Consort does for the programs that it manages.
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

    const MS: Duration = Duration::from_millis(1);

    fn after(turns: u32, cpu: Duration) -> (QuantumPace, Vec<String>) {
        let mut pace = QuantumPace::new(4 * MS);
        let reported = (0..turns).filter_map(|_| pace.note_turn(cpu)).collect();
        (pace, reported)
    }

    #[test]
    fn cheap_turns_leave_the_quantum_as_asked() {
        let (pace, reported) = after(100, MS / 2);
        assert_eq!((pace.quantum(), reported.len()), (4 * MS, 0));
    }

    #[test]
    fn dear_turns_stretch_the_quantum_and_it_is_said_once() {
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
    fn a_busy_host_is_told_of() {
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
    fn the_first_late_turn_is_told_of_and_no_other() {
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
