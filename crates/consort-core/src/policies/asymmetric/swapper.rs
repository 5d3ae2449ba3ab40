//! The policy around a rule: it observes logical cores, applies the rule's exchanges, and plans.

use super::groups::ExchangeGroups;
use super::logical_core_map::{LogicalCore, LogicalCoreGroup, LogicalCoreMap};
use crate::bottleneck::Bottleneck;
use crate::ids::ThreadId;
use crate::plan::{Decision, Placement, Reason};
use crate::policy::{
    OptionInfo, Policy, PolicyError, PolicyForm, PolicyOptions, PolicyResult, PolicyRng, View,
    Wishes,
};
use crate::pu_set::PuSet;
use crate::sample::{IntervalEnd, ThreadObservation};
use crate::signal::Signal;
use crate::topology::Topology;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The quantum of a hardware scheduler, ms (Markovic, section 3.2).
const HARDWARE_QUANTUM_MS: u64 = 1;

/// Two logical cores of a group to exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Swap {
    /// The logical core on a small core.
    pub(super) small: usize,
    /// The logical core on a large core.
    pub(super) large: usize,
    pub(super) why: &'static str,
}

/// An interval that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tick {
    /// True if the quantum is over; else some thread stalled or continued within it.
    pub(super) is_quantum: bool,
    /// Length of the interval, ns.
    pub(super) interval_ns: u64,
    /// Length of the quantum until now, ns.
    pub(super) quantum_ns: u64,
}

/// Rule that names the logical cores to exchange.
pub(super) trait SwapRule {
    /// True if it uses returns from futex and blocking calls.
    const CALLS: bool = false;

    /// Forgets exited threads.
    fn forget(&mut self, is_gone: &dyn Fn(ThreadId) -> bool) {
        let _ = is_gone;
    }

    /// Records the waits for locks and barriers at the end of every interval, before
    /// [`SwapRule::record_interval`]. Empty if the machine does not report them.
    fn note_bottlenecks(&mut self, bottlenecks: &[Bottleneck], tick: Tick) {
        let _ = (bottlenecks, tick);
    }

    /// Records all groups at the end of every interval, before the choice for any of them.
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

/// Exchanges the logical core with the highest claim on a small core for the one with the lowest
/// claim on a large core, if its claim is higher. No claim is lower than any claim. Among equals
/// the one with the lowest CPU is taken.
///
/// Small cores without an active thread are passed over, and so are all in kernel mode.
pub(super) fn promote(
    group: &LogicalCoreGroup<'_>,
    claim: impl Fn(&LogicalCore<'_>) -> Option<f64>,
    why: &'static str,
) -> Option<Swap> {
    let order = |a: &&LogicalCore<'_>, b: &&LogicalCore<'_>| -> Ordering {
        match (claim(a), claim(b)) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        }
    };
    let ready = group.small.iter().filter(|core| core.is_ready());
    // Reversed, because `max_by` takes the last of equals.
    let small = ready
        .rev()
        .filter(|core| !core.active.is_empty())
        .max_by(order)?;
    let user = group.large.iter().filter(|core| !core.is_in_kernel());
    let large = user.min_by(order)?;
    order(&small, &large).is_gt().then_some(Swap {
        small: small.logical,
        large: large.logical,
        why,
    })
}

pub(in crate::policies) const FORM: OptionInfo = OptionInfo {
    name: "form",
    default: "hardware",
    meaning: "hardware (1 ms, beneath the OS) or software (4 ms); live machines have software only",
};

/// [`FORM`] for policies that were proposed for the operating system.
pub(super) const SOFTWARE_FORM: OptionInfo = OptionInfo {
    default: "software",
    ..FORM
};

pub(in crate::policies) fn form(options: &PolicyOptions<'_>) -> Result<PolicyForm, PolicyError> {
    let words = [
        ("hardware", PolicyForm::Hardware),
        ("software", PolicyForm::Software),
    ];
    options.one_of(FORM.name, &words, "hardware or software")
}

/// The option of policies whose source has a unit that takes time to decide.
pub(super) const LATENCY: OptionInfo = OptionInfo {
    name: "latency-ns",
    default: "0",
    meaning: "ns that the unit of the hardware form takes to decide, a quantum at most; simulated alone",
};

pub(super) fn latency(options: &PolicyOptions<'_>) -> Result<u64, PolicyError> {
    options.parse_value(LATENCY.name, "a whole number of ns")
}

/// A policy that exchanges logical cores by a rule.
#[derive(Debug)]
pub(super) struct Swapper<R> {
    rule: R,
    form: PolicyForm,
    latency_ns: u64,
    map: LogicalCoreMap,
    quantum_ns: u64,
}

impl<R: SwapRule> Swapper<R> {
    pub(super) fn new(rule: R, form: PolicyForm) -> Self {
        Self {
            rule,
            form,
            latency_ns: 0,
            map: LogicalCoreMap::default(),
            quantum_ns: 0,
        }
    }

    /// Sets the time that the unit of the hardware form takes to decide.
    pub(super) fn with_latency(self, latency_ns: u64) -> Self {
        Self { latency_ns, ..self }
    }

    /// Opens the policy of that name on a machine.
    ///
    /// # Errors
    /// [`PolicyError::Unfit`] if all cores are alike.
    pub(super) fn open(self, topology: &Topology, name: &'static str) -> PolicyResult
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
}

impl<R: SwapRule> Policy for Swapper<R> {
    fn wishes(&self) -> Wishes {
        Wishes {
            form: self.form,
            on_activity: true,
            latency_ns: self.latency_ns,
            quantum_ms: (self.form == PolicyForm::Hardware).then_some(HARDWARE_QUANTUM_MS),
            calls: R::CALLS,
            ..Wishes::default()
        }
    }

    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let observation = view.observation;
        let groups = ExchangeGroups::from_topology(view.topology);
        self.map.follow_threads(&groups, observation);
        self.quantum_ns += observation.interval_ns;
        let tick = Tick {
            is_quantum: observation.ended == IntervalEnd::Quantum,
            interval_ns: observation.interval_ns,
            quantum_ns: self.quantum_ns,
        };
        if tick.is_quantum {
            self.quantum_ns = 0;
        }
        let seen = self.map.group_logical_cores(&groups, observation);
        self.rule.note_bottlenecks(&observation.bottlenecks, tick);
        self.rule.record_interval(&seen, tick);
        let mut why = BTreeMap::new();
        for group in &seen {
            for swap in self.rule.choose_swaps(group, tick, rng) {
                self.map.swap(swap.small, swap.large);
                why.insert(swap.small, swap.why);
                why.insert(swap.large, swap.why);
            }
        }
        // In hardware form a thread that is not observed may only have been switched out, and comes
        // back. Only logical cores report kernel mode.
        let is_core = |t: &ThreadObservation| t.sample.reading(Signal::KernelMode).is_some();
        if tick.is_quantum && !observation.threads.iter().any(is_core) {
            self.rule.forget(&|id| observation.thread(id).is_none());
        }
        // Last, so that this interval's threads were those of its beginning.
        self.map.remember_active(observation);
        let mut decision = Decision::default();
        for (id, logical, pu) in self.map.thread_positions() {
            let large = groups.iter().any(|group| group.large.contains(&pu));
            let kind = if large { "large" } else { "small" };
            let reason = Reason {
                considered: String::new(),
                chosen: match why.get(&logical) {
                    Some(why) => format!("goes to a {kind} core: {why}"),
                    None => format!("stays on a {kind} core"),
                },
                facts: Vec::new(),
            };
            decision.place(id, Placement::Restricted(PuSet::from_iter([pu])), reason);
        }
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::chip;
    use super::*;
    use crate::testing::{observation, thread_id};
    use rand::SeedableRng;

    /// Rule that remembers which of threads 1 and 2 it had to forget.
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
