//! A trial within one run: stretches in their order, what passed in them, and the effect so far.

use super::effect::{EffectEstimate, PairedEffect};
use super::progress::{MetricReadings, ProgressMeasure, ProgressSums};
use super::schedule::{Arm, PairOrders, TrialTiming};
use super::verdict::Verdict;
use crate::ids::ProgramId;
use crate::policy::PolicyRng;
use crate::sample::Observation;
use rand::SeedableRng;
use std::collections::BTreeMap;

/// Managed and unmanaged stretches in alternation.
#[derive(Clone, Debug)]
pub struct Trial {
    timing: TrialTiming,
    measure: ProgressMeasure,
    orders: PairOrders,
    /// True if the current pair begins managed.
    managed_first: bool,
    position: Position,
    /// End of the last quantum, ns.
    now_ns: u64,
    current: Stretch,
    /// The pair's first stretch, if it is over.
    first: Option<StretchResult>,
    total: PairedEffect,
    programs: BTreeMap<ProgramId, PairedEffect>,
    hold: Hold,
    /// True if its length depends on what it shows.
    is_check: bool,
}

/// Position of the next quantum in the trial.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Position {
    /// In the first or the second stretch of a pair.
    Pair { second: bool },
    /// Managed, until then.
    Gap { until_ns: u64 },
}

/// Withdrawal of a policy that is found to do harm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hold {
    /// The policy is on trial. Its next withdrawal takes so long; `None` if it is final.
    Ready { next_ns: Option<u64> },
    /// It has been withdrawn, for good if no end is known.
    Off {
        until_ns: Option<u64>,
        next_ns: Option<u64>,
    },
}

#[derive(Clone, Debug, Default)]
struct Stretch {
    begun_ns: u64,
    measured_ns: u64,
    programs: BTreeMap<ProgramId, ProgressSums>,
    metric: MetricReadings,
}

/// Progress in a stretch: of all together, and by program.
#[derive(Clone, Debug)]
struct StretchResult {
    total: Option<f64>,
    programs: BTreeMap<ProgramId, f64>,
}

/// Unmanaged stretches for which a harmful policy is withdrawn at first, if it is tried again.
const FIRST_HOLD: u64 = 64;
/// Most programs with an effect of their own.
const MOST_PROGRAMS: usize = 1_000;

impl Trial {
    /// Begins a trial. A policy that is found to do harm is withdrawn for good, or tried again after
    /// a while, each time twice as long, if `tries_again`.
    pub fn new(
        timing: TrialTiming,
        measure: ProgressMeasure,
        tries_again: bool,
        seed: u64,
    ) -> Self {
        let mut orders = PairOrders(PolicyRng::seed_from_u64(seed));
        let first_ns = FIRST_HOLD * timing.stretch_ns();
        Self {
            managed_first: orders.draw(),
            timing,
            measure,
            orders,
            position: Position::Pair { second: false },
            now_ns: 0,
            current: Stretch::default(),
            first: None,
            total: PairedEffect::default(),
            programs: BTreeMap::new(),
            hold: Hold::Ready {
                next_ns: tries_again.then_some(first_ns),
            },
            is_check: false,
        }
    }

    /// The same from now on, unmanaged at first and only as long as its evidence requires, because
    /// the policy is suspected to do harm.
    pub(crate) fn begin_unmanaged(mut self, now_ns: u64) -> Self {
        (self.now_ns, self.is_check) = (now_ns, true);
        self.managed_first = false;
        self.begin_stretch(false);
        self
    }

    /// True if there is an effect that is surely no harm, or one that is not surely harm after so
    /// many pairs.
    pub(crate) fn is_cleared(&self, most_pairs: usize) -> bool {
        let effect = self.total.anytime();
        let is_sure = |is: fn(&EffectEstimate) -> bool| effect.as_ref().is_some_and(is);
        is_sure(|effect| effect.low > 1.0)
            || self.total.pairs() >= most_pairs && !is_sure(|effect| effect.high < 1.0)
    }

    /// The arm of the next quantum.
    pub fn arm(&self) -> Arm {
        let is_managed = match (self.hold, self.position) {
            (Hold::Off { .. }, _) => false,
            (_, Position::Gap { .. }) => true,
            (_, Position::Pair { second }) => self.managed_first != second,
        };
        if is_managed {
            Arm::Managed
        } else {
            Arm::Unmanaged
        }
    }

    /// The measure of progress.
    pub fn measure(&self) -> ProgressMeasure {
        self.measure
    }

    /// True if the policy is withdrawn because it does harm.
    pub fn is_switched_off(&self) -> bool {
        matches!(self.hold, Hold::Off { .. })
    }

    /// Effect on all programs together so far.
    pub fn effect(&self) -> Option<EffectEstimate> {
        self.total.estimate()
    }

    /// Effect on one program so far.
    pub fn effect_on(&self, program: ProgramId) -> Option<EffectEstimate> {
        self.programs.get(&program)?.estimate()
    }

    /// The sentence about the effect so far.
    pub fn verdict(&self) -> Verdict {
        // A trial that ends because of what it shows needs the interval that allows for that.
        let estimate = match self.is_check || self.is_switched_off() {
            true => self.total.anytime(),
            false => self.total.estimate(),
        };
        let mut verdict = Verdict::from_effect(estimate, self.total.pairs(), self.measure);
        if self.is_switched_off() {
            verdict.text.push_str("; policy switched off");
        }
        verdict
    }

    /// Forgets what was measured, because another policy decides from now on.
    pub fn reset(&mut self) {
        self.total = PairedEffect::default();
        self.programs.clear();
        self.first = None;
        if let Hold::Off { next_ns, .. } = self.hold {
            self.hold = Hold::Ready { next_ns };
        }
        self.begin_pair();
    }

    /// Takes a reading of the user's number, so old at the end of the last quantum.
    pub fn add_metric(&mut self, value: f64, age_ns: u64) {
        let time_ns = self.now_ns.saturating_sub(age_ns);
        if time_ns >= self.current.begun_ns + self.timing.settle_ns {
            self.current.metric.add(value, time_ns);
        }
    }

    /// Takes the quantum that has just ended, and moves on to the next stretch if this one is over.
    pub fn add_quantum(&mut self, seen: &Observation) {
        self.now_ns = seen.time_ns;
        if let Hold::Off { until_ns, next_ns } = self.hold {
            if until_ns.is_some_and(|until_ns| self.now_ns >= until_ns) {
                self.hold = Hold::Ready { next_ns };
                self.begin_pair();
            }
            return;
        }
        match self.position {
            Position::Gap { until_ns } if self.now_ns >= until_ns => self.begin_pair(),
            Position::Gap { .. } => {}
            Position::Pair { second } => {
                self.current.add(seen, &self.timing);
                if self.current.measured_ns >= self.timing.measure_ns {
                    self.end_stretch(second);
                }
            }
        }
    }

    fn begin_pair(&mut self) {
        self.managed_first = self.orders.draw();
        self.first = None;
        self.begin_stretch(false);
    }

    fn begin_stretch(&mut self, second: bool) {
        self.position = Position::Pair { second };
        self.current = Stretch {
            begun_ns: self.now_ns,
            ..Stretch::default()
        };
    }

    fn end_stretch(&mut self, second: bool) {
        let result = self.current.result(self.measure);
        if !second {
            self.first = Some(result);
            self.begin_stretch(true);
            return;
        }
        if let Some(first) = self.first.take() {
            self.add_pair(&first, &result);
        }
        let gap_ns = self.orders.gap_ns(&self.timing);
        if gap_ns == 0 {
            self.begin_pair();
        } else {
            self.position = Position::Gap {
                until_ns: self.now_ns + gap_ns,
            };
        }
    }

    fn add_pair(&mut self, first: &StretchResult, second: &StretchResult) {
        let managed_first = self.managed_first;
        let add = |effect: &mut PairedEffect, first: f64, second: f64| {
            if managed_first {
                effect.add(first, second, true);
            } else {
                effect.add(second, first, false);
            }
        };
        if let (Some(first), Some(second)) = (first.total, second.total) {
            add(&mut self.total, first, second);
        }
        // A program that has ended needs no effect any more.
        self.programs
            .retain(|id, _| second.programs.contains_key(id));
        for (&id, &after) in &second.programs {
            let Some(&before) = first.programs.get(&id) else {
                continue;
            };
            if self.programs.contains_key(&id) || self.programs.len() < MOST_PROGRAMS {
                add(self.programs.entry(id).or_default(), before, after);
            }
        }
        let harms = { self.total.anytime() }.is_some_and(|effect| effect.high < 1.0);
        if let Hold::Ready { next_ns } = self.hold
            && harms
        {
            self.hold = Hold::Off {
                until_ns: next_ns.map(|next_ns| self.now_ns.saturating_add(next_ns)),
                next_ns: next_ns.map(|next_ns| next_ns.saturating_mul(2)),
            };
        }
    }
}

impl Stretch {
    fn add(&mut self, seen: &Observation, timing: &TrialTiming) {
        let begin_ns = seen.time_ns.saturating_sub(seen.interval_ns);
        if begin_ns < self.begun_ns + timing.settle_ns {
            return;
        }
        self.measured_ns += seen.interval_ns;
        let mut quantum: BTreeMap<ProgramId, ProgressSums> = BTreeMap::new();
        for thread in seen.threads.iter().chain(&seen.exited) {
            let sums = quantum.entry(seen.program_of(thread.id));
            sums.or_insert_with(|| ProgressSums::for_quantum(seen.interval_ns))
                .add_thread(&thread.sample, seen.throttled.contains_key(&thread.id));
        }
        for (id, sums) in quantum {
            self.programs
                .entry(id)
                .and_modify(|known| known.add(&sums))
                .or_insert(sums);
        }
    }

    fn result(&self, measure: ProgressMeasure) -> StretchResult {
        if let ProgressMeasure::Metric(kind) = measure {
            return StretchResult {
                total: self.metric.progress(kind),
                programs: BTreeMap::new(),
            };
        }
        let sums = self.programs.values().copied().reduce(|mut all, one| {
            all.add(&one);
            all
        });
        let by_program = self.programs.iter();
        StretchResult {
            // Programs run at the same time, so that their times do not add up.
            total: sums.and_then(|sums| sums.within(self.measured_ns).progress(measure)),
            programs: by_program
                .filter_map(|(&id, sums)| Some((id, sums.progress(measure)?)))
                .collect(),
        }
    }
}
