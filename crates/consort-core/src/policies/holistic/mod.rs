//! `holistic`: the resource that matters most on this machine to these programs, served.
//!
//! Source: Wang, Dey, Mars, Tang, Davidson, Soffa, "Performance Analysis of Thread Mappings with a
//! Holistic View of the Hardware Resources" (ISPASS 2012); the choice among other policies is ours.
//!
//! If a single-purpose policy knows the machine better, it decides ([`policy_selector`]): which
//! thread gets the large core on asymmetric chips, which programs share a quantum if there are more
//! than there are cores for, which threads share a core if CPUs do. The choice of a policy depends
//! on what each promises and on what the machine can observe, never on results.
//!
//! Otherwise the source's guidelines decide ([`guidelines`]). A program's characteristics are those
//! that the machine's tier shows ([`characteristics`]). Each guideline is a rule that prices a
//! mapping in cycles per second ([`rules`]). From the node inwards to the CPU the cheapest mapping
//! is taken, or by the source's priorities if nothing can be priced ([`levels`]). What one
//! observation cannot show is tried: the cheapest mapping, the source's own and the operating
//! system's, in a bounded number of rounds ([`trials`]). The mapping that surely gains most stays
//! until another load or phase comes. If none surely gains, all is left to the operating system.
//!
//! Observes what the deciding policy observes, at its quantum. The guidelines use cache and bus
//! counters if there are any, and without instructions they try nothing. Promises that a trial
//! costs a bounded time, that plans stay within masks, and that the report says which policy
//! decided, what each level's mappings cost by which rule, and which rules were overruled.
//!
//! Pitfalls: prices order mappings, they do not predict run times. Instructions stand for progress,
//! but spinning executes them too. Threads that may not run on every CPU are left alone.

mod active_programs;
mod assignment;
mod candidate;
mod characteristics;
mod guidelines;
mod levels;
mod load_stage;
mod machine_properties;
mod policy_selector;
mod report;
mod rules;
mod shape;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trial_tests;
mod trials;

pub(crate) use policy_selector::SHARED_CORES;

use self::guidelines::Guidelines;
use self::machine_properties::MachineProperties;
use self::policy_selector::{PolicySelector, expected_policy};
use super::asymmetric::{FORM, form};
use super::{check, find};
use crate::plan::Decision;
use crate::policy::{
    NameOrFile, OptionInfo, Policy, PolicyError, PolicyForm, PolicyInfo, PolicyOptions,
    PolicyResult, PolicyRng, PolicySpec, View, Wishes,
};
use crate::sample::{Observation, ThreadObservation};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use std::collections::BTreeMap;

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
    options: &[
        FORM,
        OptionInfo {
            name: MODEL,
            default: "auto",
            meaning: "interference model for cores that CPUs share: auto (the shipped one that fits), a name or FILE.toml",
        },
        OptionInfo {
            name: OBJECTIVE,
            default: "throughput",
            meaning: "what large cores and shared cores are given for: throughput, or fairness (the last is done sooner)",
        },
    ],
    open,
};

/// The policy that a model is for.
const USES_MODEL: &str = "symbiotic";
/// The option of that policy that names a model.
const MODEL: &str = "model";
/// The option of the objective, which `symbiotic` has as well.
const OBJECTIVE: &str = "objective";

/// Signals that the guidelines, and co-schedulers in their stead, use in addition to those of the
/// operating system.
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

/// Signals that it uses: all usual ones on large and small cores, and if CPUs share cores, because
/// other policies decide there.
fn uses(topology: &Topology) -> &'static [Signal] {
    let ground = MachineProperties::from_topology(topology);
    match ground.is_asymmetric || ground.smt > 1 {
        true => &[],
        false => &SIGNALS,
    }
}

fn open(topology: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let passed = ForwardedOptions::from_options(options)?;
    let ground = MachineProperties::from_topology(topology);
    let expected = expected_policy(topology, &ground, offers, &passed);
    let form = match ground.is_asymmetric {
        true => passed.form,
        false => PolicyForm::Software,
    };
    let wishes = Wishes {
        form,
        on_activity: ground.is_asymmetric,
        quantum_ms: expected.map(|chosen| chosen.quantum_ms(form)),
        calls: true,
        l1d_accesses: uses(topology).contains(&Signal::L1dAccesses),
        ..Wishes::default()
    };
    Ok(Box::new(HolisticPolicy {
        wishes,
        passed,
        ground: (topology.clone(), ground),
        offers: offers.clone(),
        selector: PolicySelector::default(),
        guidelines: Guidelines::default(),
    }))
}

/// Objective if there is a choice between policies or placements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum HolisticObjective {
    /// The sum of speeds.
    #[default]
    Throughput,
    /// Equal speeds, so that the last of equally long programs is done soonest.
    Fairness,
}

impl HolisticObjective {
    const ALL: [(&str, Self); 2] = [
        (Self::Throughput.word(), Self::Throughput),
        (Self::Fairness.word(), Self::Fairness),
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Fairness => "fairness",
        }
    }
}

/// Options that are passed on to the policy that decides.
#[derive(Clone, Debug)]
struct ForwardedOptions {
    form: PolicyForm,
    objective: HolisticObjective,
    /// Values by option.
    values: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
}

impl ForwardedOptions {
    fn from_options(options: &PolicyOptions<'_>) -> Result<Self, PolicyError> {
        let words = "throughput or fairness";
        let mut passed = Self {
            form: form(options)?,
            objective: options.one_of(OBJECTIVE, &HolisticObjective::ALL, words)?,
            values: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        // Only options that the user gives are passed on, so that each policy keeps its defaults,
        // such as the quantum of the form that it was proposed for.
        if options.is_given(OBJECTIVE) {
            passed.set_value(OBJECTIVE, passed.objective.word());
        }
        if options.is_given(FORM.name) {
            let name = match passed.form {
                PolicyForm::Hardware => "hardware",
                PolicyForm::Software => "software",
            };
            passed.set_value(FORM.name, name);
        }
        match options.name_or_file(MODEL)? {
            NameOrFile::Name(name) => passed.set_value(MODEL, name),
            NameOrFile::File { path, content } => {
                passed.set_value(MODEL, path);
                passed.files.insert(MODEL.to_owned(), content.to_owned());
            }
        }
        if options.is_given(MODEL) {
            // A model that does not exist is refused before anything is started.
            check(&passed.spec(find(USES_MODEL)?))?;
        }
        Ok(passed)
    }

    fn set_value(&mut self, key: &str, value: &str) {
        self.values.insert(key.to_owned(), value.to_owned());
    }

    /// Specification of a policy with those of the options that it has.
    fn spec(&self, info: &PolicyInfo) -> PolicySpec {
        let has = |key: &String| info.options.iter().any(|option| option.name == key);
        let kept = |all: &BTreeMap<String, String>| {
            let mut kept = all.clone();
            kept.retain(|key, _| has(key));
            kept
        };
        PolicySpec {
            name: info.name.to_owned(),
            options: kept(&self.values),
            files: kept(&self.files),
        }
    }
}

struct HolisticPolicy {
    passed: ForwardedOptions,
    /// The machine's properties, with the topology that they are computed from.
    ground: (Topology, MachineProperties),
    offers: SignalOffers,
    wishes: Wishes,
    selector: PolicySelector,
    guidelines: Guidelines,
}

impl Policy for HolisticPolicy {
    fn wishes(&self) -> Wishes {
        self.wishes
    }

    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        if self.ground.0 != *view.topology {
            let ground = MachineProperties::from_topology(view.topology);
            self.ground = (view.topology.clone(), ground);
        }
        let ground = self.ground.1;
        self.selector
            .update_choice(view, &ground, &self.offers, &self.passed);
        let mut decision = self.delegate_decision(view, rng);
        let choice = self.selector.describe_choice();
        let notes = std::iter::once(ground.describe()).chain(choice);
        decision.report.notes.splice(0..0, notes);
        decision
    }
}

impl HolisticPolicy {
    /// Decides by the policy that is selected now, at its own quantum, or by the guidelines.
    fn delegate_decision(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let Some(chosen) = self.selector.current_policy() else {
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

/// The form that the machine granted. Only logical cores report kernel mode, so threads without it
/// show that the form is software.
fn granted_form(wished: PolicyForm, observation: &Observation) -> PolicyForm {
    let is_core = |t: &ThreadObservation| t.sample.reading(Signal::KernelMode).is_some();
    let threads = &observation.threads;
    match threads.is_empty() || threads.iter().any(is_core) {
        true => wished,
        false => PolicyForm::Software,
    }
}

#[cfg(test)]
mod option_tests {
    use super::*;

    /// The options that `symbiotic` is given by holistic with these.
    fn passed_on(text: &str) -> BTreeMap<String, String> {
        let spec: PolicySpec = text.parse().unwrap();
        let options = PolicyOptions::new(&INFO, &spec).unwrap();
        let passed = ForwardedOptions::from_options(&options).unwrap();
        passed.spec(find(USES_MODEL).unwrap()).options
    }

    #[test]
    fn objective_is_passed_on_if_given() {
        assert_eq!(passed_on("holistic").get(OBJECTIVE), None);
        let fair = passed_on("holistic:objective=fairness");
        assert_eq!(fair.get(OBJECTIVE).map(String::as_str), Some("fairness"));
    }
}
