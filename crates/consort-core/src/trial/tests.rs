//! Trials of programs whose effect is known.

use super::{Arm, MetricKind, ProgressMeasure, Trial, TrialTiming};
use crate::ids::ProgramId;
use crate::policy::PolicyRng;
use crate::sample::{Observation, Reading};
use crate::signal::{Signal, Tier};
use crate::testing::{INTERVAL_NS, observation};
use crate::topology::Topology;
use rand::{RngExt, SeedableRng};

const QUANTUM_NS: u64 = 500_000_000;
const MEASURE: ProgressMeasure = ProgressMeasure::Instructions;

fn timing(unmanaged_share: f64) -> TrialTiming {
    TrialTiming {
        settle_ns: QUANTUM_NS,
        measure_ns: 4 * QUANTUM_NS,
        unmanaged_share,
    }
}

/// A quantum of one program, seen without its rate.
fn program() -> Observation {
    observation(&Topology::uniform(2, 1).unwrap(), &[(1, 0.0)])
}

/// The same one quantum later, at so many instructions per ns.
fn advance(seen: &mut Observation, rate: f64) {
    seen.interval_ns = QUANTUM_NS;
    seen.time_ns += QUANTUM_NS;
    let counted = Reading::fully_counted(rate * QUANTUM_NS as f64, Tier::Counters, QUANTUM_NS);
    for thread in &mut seen.threads {
        thread.sample.set(Signal::Instructions, counted);
    }
}

/// Rate of a program that drifts, has phases and is disturbed by others, quantum by quantum.
struct NoisyProgram {
    rng: PolicyRng,
    drift: f64,
    period: f64,
    phase: f64,
    disturbance: f64,
    time: f64,
}

impl NoisyProgram {
    fn new(seed: u64) -> Self {
        let mut rng = PolicyRng::seed_from_u64(seed);
        Self {
            // Up to 0.1 % per quantum, up or down: by a quarter over a trial.
            drift: 0.002 * (rng.random::<f64>() - 0.5),
            // Phases of 1.5 to 40 quanta.
            period: 3.0 + 77.0 * rng.random::<f64>(),
            phase: rng.random::<f64>(),
            disturbance: 0.0,
            time: 0.0,
            rng,
        }
    }

    fn rate(&mut self) -> f64 {
        self.time += 1.0;
        let uniform = (0..12).map(|_| self.rng.random::<f64>()).sum::<f64>() - 6.0;
        self.disturbance = 0.7 * self.disturbance + 0.02 * uniform;
        let in_phase = (self.time / self.period + self.phase).fract() < 0.5;
        let phase = if in_phase { 0.15 } else { 0.0 };
        libm::exp(self.drift * self.time + phase + self.disturbance)
    }
}

/// Runs a trial of so many pairs on a program that managing makes faster by a factor.
fn run(seed: u64, factor: f64, pairs: usize) -> Trial {
    let mut program = NoisyProgram::new(seed);
    let mut trial = Trial::new(timing(0.5), MEASURE, false, seed);
    let mut seen = self::program();
    seen.time_ns = 0;
    while trial.verdict().pairs < pairs && !trial.is_switched_off() {
        let managed = if trial.arm() == Arm::Managed {
            factor
        } else {
            1.0
        };
        advance(&mut seen, managed * program.rate());
        trial.add_quantum(&seen);
    }
    trial
}

#[test]
fn intervals_cover_the_truth_in_95_of_100_trials() {
    const TRIALS: u64 = 1_000;
    for (factor, base) in [(1.0, 0), (1.03, TRIALS)] {
        let covered = (0..TRIALS).filter(|seed| {
            let effect = run(base + seed, factor, 12).effect().unwrap();
            (effect.low..=effect.high).contains(&factor)
        });
        let covered = covered.count();
        assert!((930..=970).contains(&covered), "{factor}: {covered}");
    }
}

#[test]
fn harm_ends_a_trial_and_nothing_else_does() {
    let harmed = run(1, 0.6, 40);
    assert!(harmed.is_switched_off());
    let verdict = harmed.verdict();
    assert!(verdict.pairs <= 12, "{verdict:?}");
    assert!(
        verdict.text.ends_with("slower: policy switched off") || verdict.text.contains("% slower")
    );
    assert!(
        verdict.text.ends_with("policy switched off"),
        "{}",
        verdict.text
    );
    assert_eq!(harmed.arm(), Arm::Unmanaged);
    assert!(!run(1, 1.0, 40).is_switched_off());
    assert!(!run(1, 1.2, 40).is_switched_off());
}

#[test]
fn stretches_alternate_in_pairs_and_settle_first() {
    let mut trial = Trial::new(timing(0.5), MEASURE, false, 7);
    let mut seen = program();
    seen.time_ns = 0;
    let mut arms = Vec::new();
    for _ in 0..40 {
        arms.push(trial.arm());
        // Settling quanta must not count: they would spoil the ratio of 2.
        let settles = arms.len() % 5 == 1;
        let rate = match trial.arm() {
            _ if settles => 100.0,
            Arm::Managed => 2.0,
            Arm::Unmanaged => 1.0,
        };
        advance(&mut seen, rate);
        trial.add_quantum(&seen);
    }
    for pair in arms.chunks(10) {
        assert!(pair[..5].iter().all(|&arm| arm == pair[0]), "{pair:?}");
        assert!(pair[5..].iter().all(|&arm| arm != pair[0]), "{pair:?}");
    }
    let effect = trial.effect().unwrap();
    assert!((effect.ratio - 2.0).abs() < 1e-9 && effect.pairs == 4);
    assert_eq!(trial.effect_on(ProgramId(1)), Some(effect));
}

#[test]
fn unmanaged_share_is_kept() {
    let mut trial = Trial::new(timing(0.05), MEASURE, true, 3);
    let mut seen = program();
    seen.time_ns = 0;
    let quanta = 20_000;
    let mut unmanaged = 0;
    for _ in 0..quanta {
        unmanaged += usize::from(trial.arm() == Arm::Unmanaged);
        advance(&mut seen, 1.0);
        trial.add_quantum(&seen);
    }
    let share = unmanaged as f64 / f64::from(quanta);
    assert!((0.04..0.06).contains(&share), "{share}");
}

#[test]
fn withdrawn_policy_is_tried_again_later_each_time() {
    let mut trial = Trial::new(timing(0.5), MEASURE, true, 5);
    let mut seen = program();
    seen.time_ns = 0;
    let mut holds = vec![0_u32];
    for n in 0..6_000 {
        let managed = trial.arm() == Arm::Managed;
        let noise = 1.0 + 0.001 * f64::from(n % 7);
        advance(&mut seen, noise * if managed { 0.5 } else { 1.0 });
        trial.add_quantum(&seen);
        match trial.is_switched_off() {
            true => *holds.last_mut().unwrap() += 1,
            false if *holds.last().unwrap() > 0 => holds.push(0),
            false => {}
        }
    }
    assert!(holds.len() >= 3, "{holds:?}");
    assert!(holds[1] > holds[0] + holds[0] / 2, "{holds:?}");
}

#[test]
fn user_metric_counts_by_its_kind() {
    for (kind, expected) in [
        (MetricKind::Count, 3.0),
        (MetricKind::More, 3.0),
        (MetricKind::Less, 1.0 / 3.0),
    ] {
        let measure = ProgressMeasure::Metric(kind);
        let mut trial = Trial::new(timing(0.5), measure, false, 9);
        let mut seen = program();
        seen.time_ns = 0;
        let mut count = 0.0;
        while trial.verdict().pairs < 6 {
            let rate = if trial.arm() == Arm::Managed {
                3.0
            } else {
                1.0
            };
            advance(&mut seen, 1.0);
            count += rate;
            trial.add_quantum(&seen);
            trial.add_metric(
                if kind == MetricKind::Count {
                    count
                } else {
                    rate
                },
                QUANTUM_NS / 2,
            );
        }
        let effect = trial.effect().unwrap();
        assert!(
            (effect.ratio / expected - 1.0).abs() < 0.2,
            "{kind:?}: {effect:?}"
        );
    }
}

#[test]
fn without_counts_there_is_no_effect() {
    let mut trial = Trial::new(timing(0.5), MEASURE, false, 1);
    let mut seen = program();
    for _ in 0..200 {
        seen.time_ns += INTERVAL_NS;
        trial.add_quantum(&seen);
    }
    assert_eq!((trial.effect(), trial.verdict().effect), (None, None));
}

#[test]
fn waiting_is_the_estimate_without_counters() {
    let mut trial = Trial::new(timing(0.5), ProgressMeasure::Waiting, false, 2);
    let mut seen = program();
    seen.time_ns = 0;
    for _ in 0..100 {
        let wait = if trial.arm() == Arm::Managed {
            0.0
        } else {
            1.0
        };
        advance(&mut seen, 1.0);
        let waited = Reading::fully_counted(wait * INTERVAL_NS as f64, Tier::Proc, QUANTUM_NS);
        for thread in &mut seen.threads {
            thread.sample.set(Signal::WaitTime, waited);
        }
        trial.add_quantum(&seen);
    }
    let verdict = trial.verdict();
    assert!((verdict.effect.unwrap() - 2.0).abs() < 1e-9 && verdict.estimated);
}

/// Program 2 executes the same instructions in both arms, but in half of the unmanaged quanta it is
/// not there. Programs run at the same time, so that the total is 1 + 1 instructions per ns in both
/// arms, although the times of the programs add up to less in the unmanaged ones.
#[test]
fn total_progress_is_per_time_of_all_programs() {
    let mut trial = Trial::new(timing(0.5), MEASURE, false, 4);
    let alone = program();
    let mut both = alone.clone();
    let mut other = both.threads[0].clone();
    (other.id.pid, other.id.tid) = (2, 2);
    both.threads.push(other);
    let mut time_ns = 0;
    for number in 0..100 {
        let is_managed = trial.arm() == Arm::Managed;
        let is_there = is_managed || number % 2 == 0;
        let mut seen = if is_there { &both } else { &alone }.clone();
        seen.time_ns = time_ns;
        advance(&mut seen, 1.0);
        time_ns = seen.time_ns;
        if is_there && !is_managed {
            let twice = Reading::fully_counted(2.0 * QUANTUM_NS as f64, Tier::Counters, QUANTUM_NS);
            seen.threads[1].sample.set(Signal::Instructions, twice);
        }
        trial.add_quantum(&seen);
    }
    let total = trial.effect().unwrap();
    assert!((total.ratio - 1.0).abs() < 1e-9, "{total:?}");
    let first = trial.effect_on(ProgramId(1)).unwrap();
    let second = trial.effect_on(ProgramId(2)).unwrap();
    assert!((first.ratio - 1.0).abs() < 1e-9, "{first:?}");
    // While it is there, it executes half as fast under management.
    assert!((second.ratio - 0.5).abs() < 1e-9, "{second:?}");
}

#[test]
fn throttled_threads_do_not_wait_for_cpus() {
    let mut sums = super::progress::ProgressSums::for_quantum(QUANTUM_NS);
    let mut sample = program().threads[0].sample.clone();
    let waited = Reading::fully_counted(INTERVAL_NS as f64, Tier::Proc, INTERVAL_NS);
    sums.add_thread(&sample, false);
    sample.set(Signal::WaitTime, waited);
    sums.add_thread(&sample, true);
    assert_eq!(sums.progress(ProgressMeasure::Waiting), Some(1.0));
}
