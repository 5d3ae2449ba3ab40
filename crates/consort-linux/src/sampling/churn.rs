//! Rests of the sampler where processes come and go.
//!
//! Builds and shell scripts start hundreds of programs that end before they have samples enough to
//! be judged by, with code that is mostly new. A sample of a compiler costs it 26 microseconds and
//! one of a loop 14 (2-PU virtual machine, `perf record` at 2 kHz), since the interrupt and
//! what handles it displace code, data and predictions. So sampling rests there for three quarters
//! of the time, and what is sampled stands for the rest.

use crate::perf::record::Record;

/// Number of processes that end, or as much CPU time as so many that last would take, after which
/// it is judged how long they live.
const JUDGED_ENDS: u64 = 8;
/// Mean CPU time below which processes come and go, ns: a quarter of the window that judges a
/// thread.
const PASSING_NS: u64 = 250_000_000;
/// Mean CPU time above which they last again, ns.
const LASTING_NS: u64 = 2 * PASSING_NS;
/// Shortest time of sampling between two rests, ns.
const SHORTEST_NS: u64 = 100_000_000;
/// Least ratio of that time to the time that switching takes, which grows with the threads.
const PER_SWITCH: u64 = 250;
/// Length of a rest over that of the sampling before.
const REST: u64 = 3;

/// A running judgement of how long processes live, and the rests that follow from it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Churn {
    /// CPU time since the last judgement, ns, by samples.
    cpu_ns: u64,
    /// Processes that have ended since then.
    ended: u64,
    phase: Phase,
    /// Time that the last switch took, ns.
    switch_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Phase {
    /// Sampling all the time.
    #[default]
    Steady,
    /// Sampling between rests, each sample for so many.
    Between { since_ns: u64, stands_for: f64 },
    /// Resting after sampling for so long, while samples of before may still come.
    Resting {
        since_ns: u64,
        sampled_ns: u64,
        stood_for: f64,
    },
}

impl Churn {
    /// Number of samples that one stands for which is taken now.
    pub(crate) fn stands_for(self) -> f64 {
        match self.phase {
            Phase::Steady => 1.0,
            Phase::Between { stands_for, .. } => stands_for,
            Phase::Resting { stood_for, .. } => stood_for,
        }
    }

    /// Enters the records of a round that ends at `now_ns`, whose samples stand for `sample_ns` of
    /// CPU time each. Returns true if sampling is to go on from now on, false if it is to rest;
    /// none if it stays as it is.
    pub(crate) fn enter(
        &mut self,
        records: &[Record],
        sample_ns: u64,
        now_ns: u64,
    ) -> Option<bool> {
        for record in records {
            match record {
                Record::Sample { .. } => self.cpu_ns += sample_ns,
                Record::Exit(task) if task.pid == task.tid => self.ended += 1,
                _ => {}
            }
        }
        let phase = self.next(now_ns)?;
        let went_on = matches!(self.phase, Phase::Resting { .. });
        let rests = matches!(phase, Phase::Resting { .. });
        self.phase = phase;
        (went_on || rests).then_some(!rests)
    }

    /// Tells how long it took to switch sampling off or on, ns.
    pub(crate) fn switched(&mut self, took_ns: u64) {
        self.switch_ns = took_ns;
    }

    /// The phase that begins now, if one does.
    fn next(&mut self, now_ns: u64) -> Option<Phase> {
        let after = |since_ns| now_ns.saturating_sub(since_ns);
        match self.phase {
            Phase::Steady => (self.mean_ns()? < PASSING_NS).then_some(Phase::Between {
                since_ns: now_ns,
                stands_for: 1.0,
            }),
            Phase::Between {
                since_ns,
                stands_for,
            } => {
                let shortest_ns = SHORTEST_NS.max(PER_SWITCH * self.switch_ns);
                (after(since_ns) >= shortest_ns).then_some(Phase::Resting {
                    since_ns: now_ns,
                    sampled_ns: after(since_ns),
                    stood_for: stands_for,
                })
            }
            Phase::Resting {
                since_ns,
                sampled_ns,
                ..
            } => (after(since_ns) >= REST * sampled_ns).then(|| {
                if self.mean_ns().is_some_and(|ns| ns > LASTING_NS) {
                    return Phase::Steady;
                }
                let cycle_ns = (sampled_ns + after(since_ns)) as f64;
                Phase::Between {
                    since_ns: now_ns,
                    stands_for: cycle_ns / sampled_ns.max(1) as f64,
                }
            }),
        }
    }

    /// Mean CPU time of a process since the last judgement, ns, once there is enough to judge by.
    fn mean_ns(&mut self) -> Option<u64> {
        if self.ended < JUDGED_ENDS && self.cpu_ns < JUDGED_ENDS * LASTING_NS {
            return None;
        }
        let mean_ns = self.cpu_ns / self.ended.max(1);
        (self.cpu_ns, self.ended) = (0, 0);
        Some(mean_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::record::{Stamp, Task};

    const MS: u64 = 1_000_000;

    /// A round in which processes end after a sample each.
    fn round(ended: usize) -> Vec<Record> {
        let exit = |tid| {
            Record::Exit(Task {
                pid: 1,
                tid,
                parent_pid: 0,
                parent_tid: 0,
                time_ns: 0,
            })
        };
        let sample = Record::Sample {
            ip: 0,
            registers: None,
            stamp: Stamp::default(),
        };
        // A thread that is no process ends with each.
        let of_one = [sample, exit(2), exit(1)];
        std::iter::repeat_n(of_one, ended).flatten().collect()
    }

    #[test]
    fn sampling_rests_for_three_quarters_of_a_build() {
        let mut churn = Churn::default();
        assert_eq!(churn.enter(&round(7), 40 * MS, 0), None);
        // Twelve processes of 40 ms each in every 100 ms of a machine of five PUs.
        let mut switches = |from: u64, to: u64| -> Vec<(u64, bool)> {
            let rounds = (from..to).map(|n| n * 100);
            rounds
                .filter_map(|ms| Some((ms, churn.enter(&round(12), 40 * MS, ms * MS)?)))
                .collect()
        };
        assert_eq!(
            switches(1, 11),
            [
                (200, false),
                (500, true),
                (600, false),
                (900, true),
                (1000, false)
            ]
        );
        assert_eq!(switches(11, 14), [(1300, true)]);
        assert!((churn.stands_for() - 4.0).abs() < 1e-9);
        // Dear switches are rare.
        churn.switched(2 * MS);
        assert_eq!(churn.enter(&round(12), 40 * MS, 1700 * MS), None);
        assert_eq!(churn.enter(&round(12), 40 * MS, 1800 * MS), Some(false));
    }

    #[test]
    fn programs_that_last_are_sampled_all_the_time() {
        let mut churn = Churn::default();
        for ms in 0..100 {
            assert_eq!(churn.enter(&round(8), 400 * MS, ms * MS), None);
        }
        assert!((churn.stands_for() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn rests_end_when_a_program_lasts() {
        let mut churn = Churn::default();
        churn.enter(&round(8), 40 * MS, 0);
        assert_eq!(churn.enter(&[], MS, 100 * MS), Some(false));
        assert_eq!(churn.enter(&round(1), 5_000 * MS, 200 * MS), None);
        assert_eq!(churn.enter(&[], MS, 400 * MS), Some(true));
        assert_eq!(churn.enter(&[], MS, 900 * MS), None);
    }
}
