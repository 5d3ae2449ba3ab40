//! The policy around a rule: it follows logical cores, asks the rule, and plans.

use super::{Group, Groups, Layer};
use crate::bottleneck::Bottleneck;
use crate::ids::{PuId, ThreadId};
use crate::plan::{Decision, Placement, Reason};
use crate::policy::{
    Form, Opened, OptionInfo, Options, Policy, PolicyError, PolicyRng, View, Wishes,
};
use crate::pu_set::PuSet;
use crate::sample::{Ended, Observation, ThreadObservation};
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
pub(in crate::policies) trait Rule {
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
    fn note(&mut self, groups: &[Group<'_>], tick: Tick) {
        let _ = (groups, tick);
    }

    /// The exchanges in a group; each logical core at most once.
    fn choose(&mut self, group: &Group<'_>, tick: Tick, rng: &mut PolicyRng) -> Vec<Swap>;
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
pub(in crate::policies) fn form(options: &Options<'_>) -> Result<Form, PolicyError> {
    let words = [("hardware", Form::Hardware), ("software", Form::Software)];
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
pub(in crate::policies) fn latency(options: &Options<'_>) -> Result<u64, PolicyError> {
    options.parsed(LATENCY.name, "a whole number of ns")
}

/// A policy that exchanges logical cores by a rule.
#[derive(Debug)]
pub(in crate::policies) struct Swapper<R> {
    rule: R,
    form: Form,
    latency_ns: u64,
    layer: Layer,
    quantum_ns: u64,
}

impl<R: Rule> Swapper<R> {
    pub(in crate::policies) fn new(rule: R, form: Form) -> Self {
        Self {
            rule,
            form,
            latency_ns: 0,
            layer: Layer::default(),
            quantum_ns: 0,
        }
    }

    /// Returns the policy with a unit that takes so many ns to decide.
    pub(in crate::policies) fn deciding_in(self, latency_ns: u64) -> Self {
        Self { latency_ns, ..self }
    }

    /// Returns the policy of that name open on a machine.
    ///
    /// # Errors
    /// [`PolicyError::Unfit`] where all cores are alike.
    pub(in crate::policies) fn open(self, topology: &Topology, name: &'static str) -> Opened
    where
        R: 'static,
    {
        Groups::require(topology, name)?;
        Ok(Box::new(self))
    }

    #[cfg(test)]
    pub(super) fn rule(&self) -> &R {
        &self.rule
    }

    fn tick(&mut self, view: View<'_>) -> Tick {
        let interval_ns = view.observation.interval_ns;
        let is_quantum = view.observation.ended == Ended::Quantum;
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
    fn forget(&mut self, observation: &Observation) {
        let is_core = |t: &ThreadObservation| t.sample.reading(Signal::KernelMode).is_some();
        if observation.ended == Ended::Quantum && !observation.threads.iter().any(is_core) {
            self.rule.forget(&|id| observation.thread(id).is_none());
        }
    }

    /// Exchanges the logical cores that the rule names; returns the reason by logical core.
    fn exchange(
        &mut self,
        groups: &Groups,
        view: View<'_>,
        rng: &mut PolicyRng,
    ) -> BTreeMap<usize, Cow<'static, str>> {
        let tick = self.tick(view);
        let seats = self.layer.seats(groups, view.observation);
        self.rule
            .note_bottlenecks(&view.observation.bottlenecks, tick);
        self.rule.note(&seats, tick);
        let mut why = BTreeMap::new();
        for group in &seats {
            for swap in self.rule.choose(group, tick, rng) {
                self.layer.swap(swap.small, swap.large);
                why.insert(swap.small, swap.why.clone());
                why.insert(swap.large, swap.why);
            }
        }
        why
    }
}

impl<R: Rule> Policy for Swapper<R> {
    fn wishes(&self) -> Wishes {
        Wishes {
            form: self.form,
            on_activity: true,
            latency_ns: self.latency_ns,
            quantum_ms: (self.form == Form::Hardware).then_some(HARDWARE_QUANTUM_MS),
            calls: R::CALLS,
            idle: false,
        }
    }

    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let groups = Groups::of(view.topology);
        self.layer.follow(&groups, view.observation);
        let why = self.exchange(&groups, view, rng);
        self.forget(view.observation);
        self.layer.remember(view.observation);
        let mut decision = Decision::default();
        for (id, logical, pu) in self.layer.placed() {
            let reason = Reason {
                considered: String::new(),
                chosen: sentence(&groups, pu, why.get(&logical)),
                facts: Vec::new(),
            };
            let only = Placement::Restricted(PuSet::from_iter([pu]));
            decision.place(id, only, reason);
        }
        decision
    }
}

/// Kind of core that a thread goes to or stays on, and the reason, as a sentence.
fn sentence(groups: &Groups, pu: PuId, why: Option<&Cow<'static, str>>) -> String {
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

    impl Rule for Noting {
        fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
            self.0 = (1..=2).filter(|&tid| is_gone(thread_id(tid))).collect();
        }

        fn choose(&mut self, _: &Group<'_>, _: Tick, _: &mut PolicyRng) -> Vec<Swap> {
            Vec::new()
        }
    }

    #[test]
    fn rules_forget_threads_that_are_gone() {
        let topology = chip(1, 1, 1);
        let mut policy = Swapper::new(Noting::default(), Form::Software);
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
