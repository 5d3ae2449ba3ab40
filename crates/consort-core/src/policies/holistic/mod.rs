//! `holistic`: the resource that matters most on this machine to these programs, served.
//!
//! Source: Wang, Dey, Mars, Tang, Davidson, Soffa, "Performance Analysis of Thread Mappings with a
//! Holistic View of the Hardware Resources" (ISPASS 2012); the umbrella over the other policies
//! is ours.
//!
//! Where a single-purpose policy knows the ground better, it decides ([`policy_preferences`], [`policy_selector`]):
//! which thread gets the large core on asymmetric chips, which programs share a quantum where there
//! are more than there are cores for, which threads share a core where PUs do. The choice of one
//! depends on what each promises and on what the machine can tell, never on how it came out.
//!
//! Elsewhere the source's guidelines do ([`guidelines`]). Of every program is known what the
//! machine's tier tells ([`characteristics`]); each guideline is a rule that prices a mapping in
//! cycles per second ([`rules`]); from the node inwards to the PU the cheapest is taken
//! ([`levels`], [`pinning_scope`]), or by the source's priorities where nothing can be priced
//! ([`priorities`]). What one observation cannot tell is tried: the cheapest, the source's own
//! mappings and the operating system's, by rounds and a bounded number of them ([`trials`]). The
//! mapping that surely gains most stays until another load or phase comes; where none surely gains,
//! all is left to the operating system.
//!
//! Observes what the policy that decides observes, at its quantum; the guidelines use cache and bus
//! counters where there are any, and without instructions they try nothing. Promises that a trial
//! costs a bounded time, that plans stay within masks, and that the report says which policy
//! decided, what each level's mappings cost by which rule, and which rules were overruled.
//!
//! Pitfalls: prices order mappings, they do not foretell run times; instructions stand for
//! progress, which spinning makes too; threads that may not run on every PU are left alone.

mod active_programs;
mod assignment;
mod candidate;
mod characteristics;
mod division;
mod guidelines;
mod levels;
mod load_history;
mod machine_properties;
mod options;
mod phase;
mod pinning_scope;
mod policy_preferences;
mod policy_selector;
mod priorities;
mod report;
mod rules;
mod shape;
mod sharing_estimate;
mod stage;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trial_tests;
mod trials;

pub(crate) use policy_preferences::SHARED_CORES;

use self::guidelines::Guidelines;
use self::machine_properties::MachineProperties;
use self::options::{ForwardedOptions, OPTIONS};
use self::policy_selector::{ChosenPolicy, PolicySelector, expected_policy};
use crate::plan::Decision;
use crate::policy::{
    Policy, PolicyForm, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng, View, Wishes,
};
use crate::sample::{Observation, ThreadObservation};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;

#[doc(alias = "guidelines")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "holistic",
    family: "thread mapping",
    source: "Wang et al., ISPASS 2012",
    needs: &[Signal::CpuTime],
    uses,
    tier_min: Tier::Proc,
    quantum_ms: 100,
    live: true,
    simulated: true,
    summary: "serves the resource that matters most, by whichever policy knows the ground",
    options: OPTIONS,
    open,
};

/// Signals that the guidelines, and co-schedulers in their stead, use beside those that the
/// operating system tells.
const SIGNALS: [Signal; 9] = [
    Signal::L1dAccesses,
    Signal::LlcAccesses,
    Signal::LlcMisses,
    Signal::LlcMissCycles,
    Signal::BusBusyCycles,
    Signal::BusQueueCycles,
    Signal::MemoryStall,
    Signal::CycleStack,
    Signal::Energy,
];

const NANOS_PER_MS: u64 = 1_000_000;

fn open(topology: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let passed = ForwardedOptions::from_options(options)?;
    let ground = MachineProperties::from_topology(topology);
    let expected = expected_policy(topology, &ground, offers, &passed);
    Ok(Box::new(HolisticPolicy {
        wishes: wishes(&ground, &passed, expected),
        passed,
        ground: (topology.clone(), ground),
        offers: offers.clone(),
        guide: PolicySelector::default(),
        guidelines: Guidelines::default(),
    }))
}

/// Signals that it uses: whichever the policies do that are asked on large and small cores, and
/// where PUs share cores.
fn uses(topology: &Topology) -> &'static [Signal] {
    let ground = MachineProperties::from_topology(topology);
    match ground.is_asymmetric || ground.smt > 1 {
        true => &[],
        false => &SIGNALS,
    }
}

fn wishes(
    ground: &MachineProperties,
    passed: &ForwardedOptions,
    expected: Option<ChosenPolicy>,
) -> Wishes {
    let form = match ground.is_asymmetric {
        true => passed.form,
        false => PolicyForm::Software,
    };
    Wishes {
        form,
        on_activity: ground.is_asymmetric,
        quantum_ms: expected.map(|chosen| chosen.quantum_ms(form)),
        calls: true,
        ..Wishes::default()
    }
}

/// The policy.
struct HolisticPolicy {
    passed: ForwardedOptions,
    /// The ground, with the topology that it is of.
    ground: (Topology, MachineProperties),
    offers: SignalOffers,
    wishes: Wishes,
    guide: PolicySelector,
    guidelines: Guidelines,
}

impl Policy for HolisticPolicy {
    fn wishes(&self) -> Wishes {
        self.wishes
    }

    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let ground = self.refresh_properties(view.topology);
        self.guide
            .update_choice(view, &ground, &self.offers, &self.passed);
        let mut decision = self.delegate_decision(view, rng);
        let said = std::iter::once(ground.describe()).chain(self.guide.describe_choice());
        decision.report.notes.splice(0..0, said);
        decision
    }
}

impl HolisticPolicy {
    fn refresh_properties(&mut self, topology: &Topology) -> MachineProperties {
        if self.ground.0 != *topology {
            self.ground = (topology.clone(), MachineProperties::from_topology(topology));
        }
        self.ground.1
    }

    /// Decides by the policy that is the guide now, at its own quantum, or by the guidelines.
    fn delegate_decision(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let Some(chosen) = self.guide.current_policy() else {
            return self.guidelines.decide(view);
        };
        let granted = granted_form(self.wishes.form, view.observation);
        let wanted_ms = chosen.quantum_ms(granted);
        let loop_ms = self.wishes.quantum_in_ms(granted, INFO.quantum_ms);
        let mut decision = chosen.policy.decide(view, rng);
        if decision.quantum_ns.is_none() && wanted_ms != loop_ms {
            decision.quantum_ns = Some(wanted_ms * NANOS_PER_MS);
        }
        decision
    }
}

/// The form that the machine granted of the one that was wished for: only logical cores tell of
/// kernel mode.
fn granted_form(wished: PolicyForm, observation: &Observation) -> PolicyForm {
    let is_core = |t: &ThreadObservation| t.sample.reading(Signal::KernelMode).is_some();
    let threads = &observation.threads;
    match threads.is_empty() || threads.iter().any(is_core) {
        true => wished,
        false => PolicyForm::Software,
    }
}
