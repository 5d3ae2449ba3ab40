//! The policy around a rule: it follows logical cores, asks the rule, and plans.

use super::{ExchangeGroups, LogicalCoreGroup, LogicalCoreMap};
use crate::bottleneck::Bottleneck;
use crate::ids::{PuId, ThreadId};
use crate::plan::{Decision, Placement, Reason};
use crate::policy::{
    OptionInfo, Policy, PolicyError, PolicyForm, PolicyOptions, PolicyResult, PolicyRng, View,
    Wishes,
};
use crate::pu_set::PuSet;
use crate::sample::{IntervalEnd, Observation, ThreadObservation};
use crate::signal::Signal;
use crate::topology::Topology;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The quantum of a hardware scheduler, ms (Markovic, section 3.2).
const HARDWARE_QUANTUM_MS: u64 = 1;

/// Two logical cores of a group that are to be exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policies) struct Swap {
    /// The one on a small core.
    pub(in crate::policies) small: usize,
    /// The one on a large core.
    pub(in crate::policies) large: usize,
    /// Reason of the exchange.
    pub(in crate::policies) why: Cow<'static, str>,
}

/// An interval that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::policies) struct Tick {
    /// True where the quantum is over; else some thread has stalled or gone on within it.
    pub(in crate::policies) is_quantum: bool,
    /// Length of the interval, ns.
    pub(in crate::policies) interval_ns: u64,
    /// Length of the quantum until now, ns.
    pub(in crate::policies) quantum_ns: u64,
}

/// Rule that says which logical cores are to be exchanged.
pub(in crate::policies) trait SwapRule {
    /// True where it goes by returns from futex and blocking calls.
    const CALLS: bool = false;

    /// Forgets threads that are gone.
    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        let _ = is_gone;
    }

    /// Takes the waits for locks and barriers at the end of every interval, where the machine tells
    /// them.
    fn note_bottlenecks(&mut self, bottlenecks: &[Bottleneck], tick: Tick) {
        let _ = (bottlenecks, tick);
    }

    /// Looks at all groups at the end of every interval, before it is asked for each of them.
    fn record_interval(&mut self, groups: &[LogicalCoreGroup<'_>], tick: Tick) {
        let _ = (groups, tick);
    }

    /// The exchanges in a group; each logical core at most once.
    fn choose_swaps(
        &mut self,
        group: &LogicalCoreGroup<'_>,
        tick: Tick,
        rng: &mut PolicyRng,
    ) -> Vec<Swap>;
}

/// Option of all policies that exchange logical cores.
pub(in crate::policies) const FORM: OptionInfo = OptionInfo {
    name: "form",
    default: "hardware",
    meaning: "hardware (1 ms, beneath the OS) or software (4 ms); live machines have software only",
};

/// [`FORM`] for policies that were proposed for the operating system.
pub(in crate::policies) const SOFTWARE_FORM: OptionInfo = OptionInfo {
    default: "software",
    ..FORM
};

/// Reads [`FORM`].
///
/// # Errors
/// Another word.
pub(in crate::policies) fn form(options: &PolicyOptions<'_>) -> Result<PolicyForm, PolicyError> {
    let words = [
        ("hardware", PolicyForm::Hardware),
        ("software", PolicyForm::Software),
    ];
    options.one_of(FORM.name, &words, "hardware or software")
}

/// The option of policies whose source has a unit that takes time to decide.
pub(in crate::policies) const LATENCY: OptionInfo = OptionInfo {
    name: "latency-ns",
    default: "0",
    meaning: "ns that the unit of the hardware form takes to decide, a quantum at most; simulated alone",
};

/// Reads [`LATENCY`].
///
/// # Errors
/// Anything but a whole number of ns.
pub(in crate::policies) fn latency(options: &PolicyOptions<'_>) -> Result<u64, PolicyError> {
    options.parse_value(LATENCY.name, "a whole number of ns")
}

/// A policy that exchanges logical cores by a rule.
#[derive(Debug)]
pub(in crate::policies) struct Swapper<R> {
    rule: R,
    form: PolicyForm,
    latency_ns: u64,
    layer: LogicalCoreMap,
    quantum_ns: u64,
}

impl<R: SwapRule> Swapper<R> {
    pub(in crate::policies) fn new(rule: R, form: PolicyForm) -> Self {
        Self {
            rule,
            form,
            latency_ns: 0,
            layer: LogicalCoreMap::default(),
            quantum_ns: 0,
        }
    }

    /// Returns the policy with a unit that takes so many ns to decide.
    pub(in crate::policies) fn with_latency(self, latency_ns: u64) -> Self {
        Self { latency_ns, ..self }
    }

    /// Returns the policy of that name open on a machine.
    ///
    /// # Errors
    /// [`PolicyError::Unfit`] where all cores are alike.
    pub(in crate::policies) fn open(self, topology: &Topology, name: &'static str) -> PolicyResult
    where
        R: 'static,
    {
        ExchangeGroups::require(topology, name)?;
        Ok(Box::new(self))
    }

    #[cfg(test)]
    pub(super) fn rule(&self) -> &R {
        &self.rule
    }

    fn advance_tick(&mut self, view: View<'_>) -> Tick {
        let interval_ns = view.observation.interval_ns;
        let is_quantum = view.observation.ended == IntervalEnd::Quantum;
        self.quantum_ns += interval_ns;
        let tick = Tick {
            is_quantum,
            interval_ns,
            quantum_ns: self.quantum_ns,
        };
        if is_quantum {
            self.quantum_ns = 0;
        }
        tick
    }

    /// Forgets threads that are gone. In hardware form a thread that is not seen may have been
    /// switched out, and comes back.
    fn forget_exited(&mut self, observation: &Observation) {
        let is_core = |t: &ThreadObservation| t.sample.reading(Signal::KernelMode).is_some();
        if observation.ended == IntervalEnd::Quantum && !observation.threads.iter().any(is_core) {
            self.rule.forget(&|id| observation.thread(id).is_none());
        }
    }

    /// Exchanges the logical cores that the rule names; returns the reason by logical core.
    fn apply_swaps(
        &mut self,
        groups: &ExchangeGroups,
        view: View<'_>,
        rng: &mut PolicyRng,
    ) -> BTreeMap<usize, Cow<'static, str>> {
        let tick = self.advance_tick(view);
        let seats = self.layer.group_logical_cores(groups, view.observation);
        self.rule
            .note_bottlenecks(&view.observation.bottlenecks, tick);
        self.rule.record_interval(&seats, tick);
        let mut why = BTreeMap::new();
        for group in &seats {
            for swap in self.rule.choose_swaps(group, tick, rng) {
                self.layer.swap(swap.small, swap.large);
                why.insert(swap.small, swap.why.clone());
                why.insert(swap.large, swap.why);
            }
        }
        why
    }
}

impl<R: SwapRule> Policy for Swapper<R> {
    fn wishes(&self) -> Wishes {
        Wishes {
            form: self.form,
            on_activity: true,
            latency_ns: self.latency_ns,
            quantum_ms: (self.form == PolicyForm::Hardware).then_some(HARDWARE_QUANTUM_MS),
            calls: R::CALLS,
            idle: false,
        }
    }

    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let groups = ExchangeGroups::from_topology(view.topology);
        self.layer.follow_threads(&groups, view.observation);
        let why = self.apply_swaps(&groups, view, rng);
        self.forget_exited(view.observation);
        self.layer.remember_active(view.observation);
        let mut decision = Decision::default();
        for (id, logical, pu) in self.layer.thread_positions() {
            let reason = Reason {
                considered: String::new(),
                chosen: describe_placement(&groups, pu, why.get(&logical)),
                facts: Vec::new(),
            };
            let only = Placement::Restricted(PuSet::from_iter([pu]));
            decision.place(id, only, reason);
        }
        decision
    }
}

/// Kind of core that a thread goes to or stays on, and the reason, as a sentence.
fn describe_placement(
    groups: &ExchangeGroups,
    pu: PuId,
    why: Option<&Cow<'static, str>>,
) -> String {
    let large = groups.iter().any(|group| group.large.contains(&pu));
    let kind = if large { "large" } else { "small" };
    match why {
        Some(why) => format!("goes to a {kind} core: {why}"),
        None => format!("stays on a {kind} core"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::chip;
    use super::*;
    use crate::testing::{observation, thread_id};
    use rand::SeedableRng;

    /// Rule that remembers which of threads 1 and 2 it was told are gone.
    #[derive(Debug, Default)]
    struct Noting(Vec<u32>);

    impl SwapRule for Noting {
        fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
            self.0 = (1..=2).filter(|&tid| is_gone(thread_id(tid))).collect();
        }

        fn choose_swaps(
            &mut self,
            _: &LogicalCoreGroup<'_>,
            _: Tick,
            _: &mut PolicyRng,
        ) -> Vec<Swap> {
            Vec::new()
        }
    }

    #[test]
    fn rules_forget_threads_that_are_gone() {
        let topology = chip(1, 1, 1);
        let mut policy = Swapper::new(Noting::default(), PolicyForm::Software);
        let mut gone = |threads: &[(u32, f64)]| {
            let observation = observation(&topology, threads);
            let view = View {
                topology: &topology,
                observation: &observation,
            };
            policy.decide(view, &mut PolicyRng::seed_from_u64(1));
            policy.rule.0.clone()
        };
        assert!(gone(&[(1, 0.0), (2, 0.0)]).is_empty());
        assert_eq!(gone(&[(1, 0.0)]), [2]);
    }
}
