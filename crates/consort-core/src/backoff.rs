//! Withdrawal of plans after which progress fell.
//!
//! After a plan has changed placements, the progress of the next quanta is compared with that of
//! the quanta before. If progress fell by more than the tolerance and by more than its own
//! variation explains, the policy is held off: every thread is unrestricted for a while, each time
//! twice as long.
//!
//! Progress is instructions per second of CPU and waiting time if instructions are counted, else
//! the share of runnable time that threads spent on a PU. A plan that makes threads queue lowers
//! both; a plan that makes threads compete inside a core lowers only the former. The quanta that
//! are compared must have the same active threads, otherwise a difference could come from the
//! threads. If threads were hardly on the PUs of the plan, nothing is concluded either, because the
//! plan was not in force. Threads that are throttled by a limit of their control group do not
//! count, because they wait for the limit under any plan.

use crate::ids::ThreadId;
use crate::sample::{Observation, ThreadObservation};
use crate::signal::Signal;
use std::collections::{BTreeSet, VecDeque};

/// Quanta that are compared before a change, and after it.
const WINDOW: usize = 4;
/// Least share of a PU that an active thread wants.
const ACTIVE_SHARE: f64 = 0.05;
/// A fall must exceed this many standard deviations of progress, otherwise it can be noise.
const DEVIATIONS: f64 = 3.0;
/// Threads must spend at least this share of their time on the PUs of the plan, otherwise the
/// quantum does not count for or against it.
const HELD: f64 = 0.5;
/// The longest hold-off, quanta.
const LONGEST: u64 = 256;

/// Permission for the policy to decide the next quantum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackoffVerdict {
    /// The policy may decide.
    GoOn,
    /// The policy may not decide, with the reason for the report.
    HoldOff(String),
}

/// Watches progress and holds the policy off if progress falls after its plans.
#[derive(Clone, Debug)]
pub struct Backoff {
    /// Relative fall of progress that is tolerated; `None` switches the watch off.
    tolerance: Option<f64>,
    recent: VecDeque<QuantumProgress>,
    trial: Option<PlanTrial>,
    held_for: u64,
    next_hold: u64,
    reason: String,
    undone: u64,
    largest_fall: f64,
    not_held: u64,
}

#[derive(Clone, Debug)]
struct QuantumProgress {
    progress: f64,
    /// True if threads were mostly on the PUs of the last plan: only then does the quantum speak
    /// for or against that plan.
    held: bool,
    active: BTreeSet<ThreadId>,
}

#[derive(Clone, Debug)]
struct PlanTrial {
    before: Vec<f64>,
    active: BTreeSet<ThreadId>,
    after: Vec<f64>,
}

impl Backoff {
    /// Tolerates a relative fall of progress of `tolerance`, 0 to 1.
    pub fn new(tolerance: f64) -> Self {
        Self {
            tolerance: Some(tolerance),
            ..Self::off()
        }
    }

    /// Never holds off.
    pub fn off() -> Self {
        Self {
            tolerance: None,
            recent: VecDeque::new(),
            trial: None,
            held_for: 0,
            next_hold: 2 * WINDOW as u64,
            reason: String::new(),
            undone: 0,
            largest_fall: 0.0,
            not_held: 0,
        }
    }

    /// Forgets progress and the trial, because they say nothing about another policy. The numbers
    /// of plans stay.
    pub fn reset_progress(&mut self) {
        *self = Self {
            tolerance: self.tolerance,
            undone: self.undone,
            largest_fall: self.largest_fall,
            not_held: self.not_held,
            ..Self::off()
        };
    }

    /// Number of plans that have been undone.
    pub fn undone_plans(&self) -> u64 {
        self.undone
    }

    /// Largest fall of progress after a plan that was undone, 0 to 1; 0 if none was.
    pub fn largest_fall(&self) -> f64 {
        self.largest_fall
    }

    /// Number of plans without a conclusion, because threads did not stay on their PUs.
    pub fn inconclusive_plans(&self) -> u64 {
        self.not_held
    }

    /// Records the last quantum and returns whether the policy may decide the next.
    pub fn judge(&mut self, seen: &Observation) -> BackoffVerdict {
        let Some(tolerance) = self.tolerance else {
            return BackoffVerdict::GoOn;
        };
        let quantum = QuantumProgress::from_observation(seen);
        self.update_trial(&quantum, tolerance);
        self.recent.push_back(quantum);
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        if self.held_for == 0 {
            return BackoffVerdict::GoOn;
        }
        self.held_for -= 1;
        BackoffVerdict::HoldOff(self.reason.clone())
    }

    /// Records that a plan was enacted. A trial begins if the plan changed placements and no trial
    /// is running.
    pub fn record_enactment(&mut self, seen: &Observation, changed: bool) {
        if self.tolerance.is_none() || !changed || self.trial.is_some() || self.held_for > 0 {
            return;
        }
        let active = QuantumProgress::from_observation(seen).active;
        let same = self.recent.iter().filter(|q| q.active == active);
        let before: Vec<f64> = same.map(|q| q.progress).collect();
        if before.len() >= 2 {
            self.trial = Some(PlanTrial {
                before,
                active,
                after: Vec::new(),
            });
        }
    }

    fn update_trial(&mut self, quantum: &QuantumProgress, tolerance: f64) {
        let Some(trial) = &mut self.trial else {
            return;
        };
        if !quantum.held {
            self.not_held += 1;
        }
        if trial.active != quantum.active || !quantum.held {
            self.trial = None;
            return;
        }
        trial.after.push(quantum.progress);
        if trial.after.len() == WINDOW {
            let fall = trial.significant_fall(tolerance);
            self.trial = None;
            self.finish_trial(fall);
        }
    }

    fn finish_trial(&mut self, fall: Option<f64>) {
        match fall {
            Some(fall) => {
                self.undone += 1;
                self.largest_fall = self.largest_fall.max(fall);
                self.held_for = self.next_hold;
                self.reason = format!(
                    "progress fell by {:.0} percent after the last change: undone, \
                     next attempt in {} quanta",
                    100.0 * fall,
                    self.next_hold
                );
                self.next_hold = (2 * self.next_hold).min(LONGEST);
            }
            None => self.next_hold = 2 * WINDOW as u64,
        }
    }
}

impl QuantumProgress {
    fn from_observation(seen: &Observation) -> Self {
        let is_active = |t: &&ThreadObservation| seen.wanted_share(t) >= ACTIVE_SHARE;
        let active = unthrottled_threads(seen)
            .filter(is_active)
            .map(|t| t.id)
            .collect();
        Self {
            progress: progress(seen),
            held: seen.adherence().is_none_or(|share| share >= HELD),
            active,
        }
    }
}

impl PlanTrial {
    /// Relative fall of mean progress, or `None` if it is within tolerance or variation.
    fn significant_fall(&self, tolerance: f64) -> Option<f64> {
        let (before, after) = (mean(&self.before), mean(&self.after));
        let fall = before - after;
        let noise = DEVIATIONS * deviation(&self.before).max(deviation(&self.after));
        let significant = before > 0.0 && fall > tolerance * before && fall > noise;
        significant.then(|| fall / before)
    }
}

fn unthrottled_threads(seen: &Observation) -> impl Iterator<Item = &ThreadObservation> {
    let threads = seen.threads.iter();
    threads.filter(|thread| !seen.throttled.contains_key(&thread.id))
}

/// Work per unit of the time in which threads wanted to run.
fn progress(seen: &Observation) -> f64 {
    let total = |signal| -> Option<f64> {
        let values = unthrottled_threads(seen).map(|t| t.sample.get(signal));
        values.sum::<Option<f64>>()
    };
    let run = total(Signal::CpuTime).unwrap_or(0.0);
    let wait = total(Signal::WaitTime).unwrap_or(0.0);
    let work = total(Signal::Instructions).unwrap_or(run);
    if run + wait > 0.0 {
        work / (run + wait)
    } else {
        0.0
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Sample standard deviation; 0 for fewer than two values.
fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let centre = mean(values);
    let squares: f64 = values.iter().map(|v| (v - centre).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Reading;
    use crate::sample::Throttle;
    use crate::signal::Tier;
    use crate::testing::{INTERVAL_NS, observation};
    use crate::topology::Topology;

    /// Two active threads that wait for this share of their runnable time.
    fn quantum(waiting: f64) -> Observation {
        let topology = Topology::uniform(2, 1).unwrap();
        let mut seen = observation(&topology, &[(1, 0.0), (2, 0.0)]);
        for thread in &mut seen.threads {
            let wait_ns = INTERVAL_NS as f64 * waiting / (1.0 - waiting);
            let reading = Reading::fully_counted(wait_ns, Tier::Proc, INTERVAL_NS);
            thread.sample.set(Signal::WaitTime, reading);
        }
        seen
    }

    /// Feeds quanta, with a change enacted after the `WINDOW`th; counts the quanta held off.
    fn held(backoff: &mut Backoff, before: f64, after: f64) -> usize {
        for i in 0..WINDOW {
            backoff.judge(&quantum(before));
            backoff.record_enactment(&quantum(before), i + 1 == WINDOW);
        }
        let verdicts = (0..50).map(|_| backoff.judge(&quantum(after)));
        verdicts.filter(|v| *v != BackoffVerdict::GoOn).count()
    }

    #[test]
    fn plan_that_makes_threads_queue_is_undone() {
        let mut backoff = Backoff::new(0.05);
        assert_eq!(held(&mut backoff, 0.0, 0.4), 2 * WINDOW);
        assert_eq!(backoff.undone_plans(), 1);
    }

    #[test]
    fn each_hold_off_is_twice_as_long() {
        let mut backoff = Backoff::new(0.05);
        held(&mut backoff, 0.0, 0.4);
        assert_eq!(held(&mut backoff, 0.0, 0.4), 4 * WINDOW);
    }

    #[test]
    fn better_and_slightly_worse_plans_are_kept() {
        for after in [0.0, 0.1, 0.12] {
            assert_eq!(held(&mut Backoff::new(0.05), 0.1, after), 0, "{after}");
        }
    }

    #[test]
    fn other_active_threads_prevent_a_conclusion() {
        let mut backoff = Backoff::new(0.05);
        for i in 0..WINDOW {
            backoff.judge(&quantum(0.0));
            backoff.record_enactment(&quantum(0.0), i + 1 == WINDOW);
        }
        let mut fewer = quantum(0.4);
        fewer.threads.pop();
        assert!((0..20).all(|_| backoff.judge(&fewer) == BackoffVerdict::GoOn));
    }

    #[test]
    fn plan_not_in_force_is_not_undone() {
        let mut backoff = Backoff::new(0.05);
        for i in 0..WINDOW {
            backoff.judge(&quantum(0.0));
            backoff.record_enactment(&quantum(0.0), i + 1 == WINDOW);
        }
        let mut astray = quantum(0.4);
        for thread in &mut astray.threads {
            let in_place = 0.2 * thread.sample.cpu_time_ns();
            let reading = Reading::fully_counted(in_place, Tier::Proc, INTERVAL_NS);
            thread.sample.set(Signal::PlannedTime, reading);
        }
        assert!((0..20).all(|_| backoff.judge(&astray) == BackoffVerdict::GoOn));
        assert_eq!(
            (backoff.inconclusive_plans(), backoff.undone_plans()),
            (1, 0)
        );
    }

    #[test]
    fn throttled_threads_do_not_count() {
        let mut backoff = Backoff::new(0.05);
        for i in 0..WINDOW {
            backoff.judge(&quantum(0.0));
            backoff.record_enactment(&quantum(0.0), i + 1 == WINDOW);
        }
        let mut throttled = quantum(0.9);
        let throttle = Throttle {
            group: "/a".into(),
            cpus: 0.1,
            share: 1.0,
        };
        let ids = throttled.threads.iter().map(|thread| thread.id);
        throttled.throttled = ids.map(|id| (id, throttle.clone())).collect();
        assert!((0..20).all(|_| backoff.judge(&throttled) == BackoffVerdict::GoOn));
        assert_eq!(backoff.undone_plans(), 0);
    }

    #[test]
    fn disabled_backoff_never_holds_off() {
        assert_eq!(held(&mut Backoff::off(), 0.0, 0.9), 0);
    }
}
