//! Withdrawal of policies that make programs slower.
//!
//! After a plan has changed placements, the progress of the next quanta is compared with that of
//! the quanta before. If it fell by more than the tolerance and its interval excludes no change,
//! the plan is undone at once. A [`Trial`] then alternates short unmanaged and managed stretches and
//! decides: the policy is withdrawn, each time for twice as long, if its effect at any time is surely
//! harmful, and continues otherwise. All estimates are those of [`crate::trial`].
//!
//! The progress that raises the suspicion is instructions per second of CPU and waiting time if
//! instructions are counted, else the share of runnable time that threads spent on a CPU. The
//! quanta that are compared must have the same active threads, otherwise a difference could come
//! from the threads. If threads were hardly on the CPUs of the plan, nothing is concluded either,
//! because the plan was not in force. Threads that are throttled by a limit of their control group
//! do not count, because they wait for the limit under any plan.

use crate::ids::ThreadId;
use crate::sample::{Observation, ThreadObservation};
use crate::signal::Signal;
use crate::trial::{
    Arm, EffectEstimate, PairedEffect, ProgressMeasure, Trial, TrialTiming, Verdict,
};
use std::collections::{BTreeSet, VecDeque};

/// Quanta that are compared before a change, and after it, and that count in a stretch.
const WINDOW: usize = 4;
/// Quanta before a change that an interval needs.
const LEAST_BEFORE: usize = 3;
/// Least share of a CPU that an active thread wants.
const ACTIVE_SHARE: f64 = 0.05;
/// Threads must spend at least this share of their time on the CPUs of the plan, otherwise the
/// quantum does not count for or against it.
const HELD: f64 = 0.5;
/// Pairs of stretches after which a policy that is not surely harmful is no longer suspected.
const MOST_PAIRS: usize = 12;
/// Half of the stretches of a trial are unmanaged.
const HALF: f64 = 0.5;

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
    comparison: Option<PlanComparison>,
    /// Trial of the policy since progress fell; `None` if it is not suspected.
    trial: Option<Trial>,
    /// Verdict of the last trial that is over.
    cleared: Option<Verdict>,
    undone: u64,
    largest_fall: f64,
    not_held: u64,
}

#[derive(Clone, Debug)]
struct QuantumProgress {
    progress: f64,
    /// True if threads were mostly on the CPUs of the last plan: only then does the quantum speak
    /// for or against that plan.
    held: bool,
    active: BTreeSet<ThreadId>,
}

/// Progress before a plan and under it.
#[derive(Clone, Debug)]
struct PlanComparison {
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
            comparison: None,
            trial: None,
            cleared: None,
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

    /// Effect of the policy by its trial since progress fell, or by the last such trial. `None` if
    /// there was none, or too few pairs of stretches for an interval.
    pub fn verdict(&self) -> Option<Verdict> {
        let latest = self.trial.as_ref().map(Trial::verdict);
        let latest = latest.or_else(|| self.cleared.clone());
        latest.filter(|verdict| verdict.effect.is_some())
    }

    /// Number of plans without a conclusion, because threads did not stay on their CPUs.
    pub fn inconclusive_plans(&self) -> u64 {
        self.not_held
    }

    /// Records the last quantum and returns whether the policy may decide the next. `measure` is
    /// the machine's measure of progress.
    pub fn judge(
        &mut self,
        seen: &Observation,
        measure: Option<ProgressMeasure>,
    ) -> BackoffVerdict {
        let Some(tolerance) = self.tolerance else {
            return BackoffVerdict::GoOn;
        };
        if let Some(trial) = &mut self.trial {
            trial.add_quantum(seen);
            if trial.is_cleared(MOST_PAIRS) {
                self.cleared = self.trial.take().map(|trial| trial.verdict());
            }
            return self.permission();
        }
        let quantum = QuantumProgress::from_observation(seen);
        let fall = self.compare(&quantum, tolerance);
        self.recent.push_back(quantum);
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        if let (Some(fall), Some(measure)) = (fall, measure) {
            self.undone += 1;
            self.largest_fall = self.largest_fall.max(fall);
            // What is known of progress is about plans of before.
            self.recent.clear();
            let timing = TrialTiming {
                settle_ns: seen.interval_ns,
                measure_ns: WINDOW as u64 * seen.interval_ns,
                unmanaged_share: HALF,
            };
            let trial = Trial::new(timing, measure, true, self.undone);
            self.trial = Some(trial.begin_unmanaged(seen.time_ns));
        }
        self.permission()
    }

    fn permission(&self) -> BackoffVerdict {
        let Some(trial) = &self.trial else {
            return BackoffVerdict::GoOn;
        };
        if trial.is_switched_off() {
            let effect = trial.verdict().text;
            return BackoffVerdict::HoldOff(format!("the policy does harm: {effect} for a while"));
        }
        match trial.arm() {
            Arm::Managed => BackoffVerdict::GoOn,
            Arm::Unmanaged => BackoffVerdict::HoldOff(format!(
                "progress fell by {:.0} percent after a change: undone; stretches with and without \
                 the policy are compared",
                100.0 * self.largest_fall
            )),
        }
    }

    /// Records that a plan was enacted. A comparison begins if the plan changed placements and no
    /// comparison or trial is running.
    pub fn record_enactment(&mut self, seen: &Observation, changed: bool) {
        let is_busy = self.comparison.is_some() || self.trial.is_some();
        if self.tolerance.is_none() || !changed || is_busy {
            return;
        }
        let active = QuantumProgress::from_observation(seen).active;
        let same = self.recent.iter().filter(|q| q.active == active);
        let before: Vec<f64> = same.map(|q| q.progress).collect();
        if before.len() >= LEAST_BEFORE {
            self.comparison = Some(PlanComparison {
                before,
                active,
                after: Vec::new(),
            });
        }
    }

    /// Adds a quantum to the comparison, and returns the fall of progress at its end, if there is
    /// one.
    fn compare(&mut self, quantum: &QuantumProgress, tolerance: f64) -> Option<f64> {
        let comparison = self.comparison.as_mut()?;
        if !quantum.held {
            self.not_held += 1;
        }
        if comparison.active != quantum.active || !quantum.held {
            self.comparison = None;
            return None;
        }
        comparison.after.push(quantum.progress);
        if comparison.after.len() < WINDOW {
            return None;
        }
        let effect = self.comparison.take()?.effect()?;
        (effect.ratio < 1.0 - tolerance && effect.high < 1.0).then_some(1.0 - effect.ratio)
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

impl PlanComparison {
    /// Progress under the plan over that before it, quantum by quantum.
    fn effect(&self) -> Option<EffectEstimate> {
        let mut effect = PairedEffect::default();
        for (&before, &after) in self.before.iter().zip(&self.after) {
            effect.add(after, before, false);
        }
        effect.estimate()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Reading, Throttle};
    use crate::signal::Tier;
    use crate::testing::{INTERVAL_NS, observation};
    use crate::topology::Topology;

    const MEASURE: Option<ProgressMeasure> = Some(ProgressMeasure::Waiting);

    /// Quanta of two active threads, one after the other.
    struct Quanta {
        backoff: Backoff,
        time_ns: u64,
    }

    impl Quanta {
        /// `WINDOW` quanta in which threads wait for this share of their runnable time, and then a
        /// plan that changes placements.
        fn before_change(waiting: f64) -> Self {
            let mut quanta = Self {
                backoff: Backoff::new(0.05),
                time_ns: 0,
            };
            for _ in 0..WINDOW {
                let seen = quanta.next(waiting);
                quanta.judge(&seen);
            }
            let last = quanta.next(waiting);
            quanta.backoff.record_enactment(&last, true);
            quanta
        }

        fn next(&mut self, waiting: f64) -> Observation {
            let topology = Topology::uniform(2, 1).unwrap();
            let mut seen = observation(&topology, &[(1, 0.0), (2, 0.0)]);
            self.time_ns += INTERVAL_NS;
            (seen.time_ns, seen.interval_ns) = (self.time_ns, INTERVAL_NS);
            for thread in &mut seen.threads {
                let wait_ns = INTERVAL_NS as f64 * waiting / (1.0 - waiting);
                let reading = Reading::fully_counted(wait_ns, Tier::Proc, INTERVAL_NS);
                thread.sample.set(Signal::WaitTime, reading);
            }
            seen
        }

        fn judge(&mut self, seen: &Observation) -> bool {
            self.backoff.judge(seen, MEASURE) == BackoffVerdict::GoOn
        }

        /// Numbers of the quanta that are managed, among so many in which threads wait as long as
        /// `waiting` returns for a quantum with this number and with or without the policy.
        fn managed(&mut self, quanta: usize, waiting: impl Fn(usize, bool) -> f64) -> Vec<usize> {
            let mut managed = Vec::new();
            let mut is_managed = true;
            for number in 0..quanta {
                if is_managed {
                    managed.push(number);
                }
                let seen = self.next(waiting(number, is_managed));
                is_managed = self.judge(&seen);
            }
            managed
        }
    }

    /// Threads wait under the policy only. Four quanta raise the suspicion. The interval that holds
    /// at any time exists from six pairs on, so that six managed stretches of five quanta follow.
    #[test]
    fn policy_that_makes_threads_queue_is_withdrawn() {
        let mut quanta = Quanta::before_change(0.0);
        let managed = quanta.managed(300, |_, is_managed| if is_managed { 0.4 } else { 0.0 });
        assert_eq!(managed[..WINDOW], [0, 1, 2, 3]);
        assert!(managed[WINDOW] >= WINDOW + 5, "{managed:?}");
        assert!(managed.len() <= WINDOW + 6 * 5, "{managed:?}");
        assert_eq!(quanta.backoff.undone_plans(), 1);
        assert!((quanta.backoff.largest_fall() - 0.4).abs() < 1e-9);
        let verdict = quanta.backoff.verdict().unwrap();
        assert!((verdict.effect.unwrap() - 0.6).abs() < 1e-9, "{verdict:?}");
        assert!(verdict.high.unwrap() < 1.0);
        assert!(verdict.text.contains("policy switched off"), "{verdict:?}");
    }

    #[test]
    fn fall_that_comes_from_elsewhere_clears_the_policy() {
        let mut quanta = Quanta::before_change(0.0);
        // Others take CPUs from the change on, with and without the policy.
        let managed = quanta.managed(400, |_, _| 0.4);
        let trial = WINDOW + MOST_PAIRS * 2 * (WINDOW + 1);
        assert_eq!(managed.len(), 400 - (trial - WINDOW) / 2);
        assert!(managed.contains(&trial) && managed.last() == Some(&399));
        let verdict = quanta.backoff.verdict().unwrap();
        assert!(
            verdict.text.starts_with("no difference found"),
            "{verdict:?}"
        );
    }

    #[test]
    fn better_and_slightly_worse_plans_are_kept() {
        for after in [0.0, 0.1, 0.12] {
            let managed = Quanta::before_change(0.1).managed(50, |_, _| after);
            assert_eq!(managed.len(), 50, "{after}");
        }
    }

    #[test]
    fn noise_raises_no_suspicion() {
        // A mean fall of 10 percent, in quanta that differ by more than that.
        let mut quanta = Quanta::before_change(0.0);
        let managed = quanta.managed(4, |number, _| if number == 0 { 0.4 } else { 0.0 });
        assert_eq!(managed.len(), 4);
        assert_eq!(quanta.backoff.undone_plans(), 0);
    }

    #[test]
    fn other_active_threads_prevent_a_conclusion() {
        let mut quanta = Quanta::before_change(0.0);
        for _ in 0..20 {
            let mut fewer = quanta.next(0.4);
            fewer.threads.pop();
            assert!(quanta.judge(&fewer));
        }
    }

    #[test]
    fn plan_not_in_force_is_not_undone() {
        let mut quanta = Quanta::before_change(0.0);
        for _ in 0..20 {
            let mut astray = quanta.next(0.4);
            for thread in &mut astray.threads {
                let in_place = 0.2 * thread.sample.cpu_time_ns();
                let reading = Reading::fully_counted(in_place, Tier::Proc, INTERVAL_NS);
                thread.sample.set(Signal::PlannedTime, reading);
            }
            assert!(quanta.judge(&astray));
        }
        let backoff = &quanta.backoff;
        assert_eq!(
            (backoff.inconclusive_plans(), backoff.undone_plans()),
            (1, 0)
        );
    }

    #[test]
    fn throttled_threads_do_not_count() {
        let mut quanta = Quanta::before_change(0.0);
        let throttle = Throttle {
            group: "/a".into(),
            cpus: 0.1,
            share: 1.0,
        };
        for _ in 0..20 {
            let mut throttled = quanta.next(0.9);
            let ids = throttled.threads.iter().map(|thread| thread.id);
            throttled.throttled = ids.map(|id| (id, throttle.clone())).collect();
            assert!(quanta.judge(&throttled));
        }
        assert_eq!(quanta.backoff.undone_plans(), 0);
    }

    #[test]
    fn disabled_backoff_never_holds_off() {
        let mut quanta = Quanta::before_change(0.0);
        quanta.backoff = Backoff::off();
        let last = quanta.next(0.0);
        quanta.backoff.record_enactment(&last, true);
        assert_eq!(quanta.managed(50, |_, _| 0.9).len(), 50);
    }
}
