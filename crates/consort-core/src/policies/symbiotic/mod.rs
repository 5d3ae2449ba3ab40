//! `symbiotic`: the pairs that slow each other down least share the cores.
//!
//! Source: Feliu, Eyerman, Sahuquillo, Petit, "Symbiotic Job Scheduling on the IBM POWER8"
//! (HPCA 2016), sections 3 to 5.
//!
//! Observes a cycle stack per thread, and cycles and instructions if it corrects itself; by default
//! every 100 ms. The inverse model turns the stacks seen together into stacks alone
//! ([`machine_model`]). The forward model predicts what every pair would do to each other, earlier
//! differences from the prediction correct it, and a minimum-weight perfect matching makes the
//! pairs, or a hierarchical one the groups if more than two share a core ([`partners`]). Groups go
//! to the cores that take the fewest moves.
//!
//! Promises: of all pairings the one with the least predicted cost, exactly. Nothing is known of a
//! thread but what its counters show.
//!
//! Beyond the paper: `numa` leaves threads on the node of their memory and pairs inside nodes,
//! because a thread that is moved away from its memory loses more than a better partner gives.
//!
//! `core-asymmetry` is for cores that are alike by name and are not ([`asymmetry`]): `first-half`
//! puts the threads that wait for memory most on the first half of the cores, the paper's
//! experiment. `true`, beyond the paper, learns which cores are worse for them and puts groups
//! where they lose least.
//!
//! Differs from the paper in how a thread's performance alone is measured. The paper stops all but
//! one thread of a core. Here the threads of a core take turns on one of its CPUs for as long,
//! which needs no right to stop threads, and each is alone on the core while it runs
//! ([`isolation`]).

mod asymmetry;
mod isolation;
mod machine_model;
mod partners;
#[cfg(test)]
mod tests;

pub use self::asymmetry::CORE_DISADVANTAGE;
use self::asymmetry::{CoreDisadvantages, CoreHalves};
use self::isolation::IsolationSchedule;
use self::machine_model::{AloneStacks, MachineModel, read_model_option};
use self::partners::{MeasuredPerformance, Partners, core_of};
use super::grouping::{
    FillDomain, GroupedThreads, HomeNodes, is_in_own_domain, leave_to_os, place_groups,
};
use crate::ids::ThreadId;
use crate::plan::Decision;
use crate::policy::{
    ALL_USUAL, OptionInfo, Policy, PolicyError, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng,
    View,
};
use crate::sample::{Observation, ThreadObservation};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;

#[doc(alias = "symbiotic job scheduling")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "symbiotic",
    family: "symbiosis",
    source: "Feliu et al., HPCA 2016, sections 3-5",
    needs: &[Signal::CpuTime, Signal::CycleStack],
    uses: ALL_USUAL,
    tier_min: Tier::Sampling,
    quantum_ms: 100,
    live: true,
    simulated: true,
    summary: "lets those share a core that are predicted to slow each other down least",
    options: OPTIONS,
    open,
};

const OPTIONS: &[OptionInfo] = &[
    OptionInfo {
        name: "model",
        default: "auto",
        meaning: "the interference model: a FILE.toml of 'consort train', the name of a shipped one, or auto",
    },
    OptionInfo {
        name: "objective",
        default: "slowdown",
        meaning: "what pairs are chosen for: slowdown (least sum), throughput (most STP) or fairness (least sum of squares)",
    },
    OptionInfo {
        name: "correction",
        default: "true",
        meaning: "correct predictions by what came out; needs cycles and instructions",
    },
    OptionInfo {
        name: "period",
        default: "200",
        meaning: "quanta between two measurements of threads alone (a number from 1)",
    },
    OptionInfo {
        name: "alone-ms",
        default: "20",
        meaning: "time that each thread is measured alone, ms (a number from 1)",
    },
    OptionInfo {
        name: "numa",
        default: "true",
        meaning: "leave every thread on the NUMA node of its memory, and pair inside nodes, which the paper's scheduler does not; false with core-asymmetry",
    },
    OptionInfo {
        name: "core-asymmetry",
        default: "false",
        meaning: "first-half (the paper's experiment): pair as usual, and seat the pairs that wait for memory most on the first half of the cores; first-half-inside (another reading): the threads that wait most are for the first half, and pairs are made inside each half; true: learn which cores are bad for them by measuring alone on random cores, and seat by it; or false",
    },
    OptionInfo {
        name: "estimated",
        default: "true",
        meaning: "whether cycle stacks may be estimated from samples instead of counted",
    },
    OptionInfo {
        name: "active",
        default: "0.1",
        meaning: "threads below this share of one CPU are not placed (0 to 1)",
    },
];

/// The cost of a slowdown; the sum over all threads is minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowdownObjective {
    /// The slowdown itself, as in the paper (section 4.3): the least ANTT.
    Slowdown,
    /// The loss of throughput by it: the most STP.
    Throughput,
    /// Its square: one large slowdown costs more than two small ones of the same sum.
    Fairness,
}

const OBJECTIVE_WORDS: [(&str, SlowdownObjective); 3] = [
    ("slowdown", SlowdownObjective::Slowdown),
    ("throughput", SlowdownObjective::Throughput),
    ("fairness", SlowdownObjective::Fairness),
];

impl SlowdownObjective {
    /// Finds the objective by the word of the option `objective`.
    pub fn from_name(word: &str) -> Option<Self> {
        let found = OBJECTIVE_WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, objective)| *objective)
    }

    /// Name of the cost of a pair of threads.
    pub(crate) fn cost_name(self) -> &'static str {
        match self {
            Self::Slowdown => "predicted sum of both slowdowns",
            Self::Throughput => "predicted loss of throughput by both",
            Self::Fairness => "predicted sum of both squared slowdowns",
        }
    }

    /// Cost of a thread of this slowdown.
    pub fn cost(self, slowdown: f64) -> f64 {
        match self {
            Self::Slowdown => slowdown,
            Self::Throughput => 1.0 - 1.0 / slowdown,
            Self::Fairness => slowdown * slowdown,
        }
    }
}

/// Treatment of cores that are alike by name and are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoreAsymmetry {
    Ignored,
    /// The first half is faster for memory-bound threads, as on the paper's machine: pairs that
    /// wait for memory most are seated there.
    FirstHalf,
    /// The same, and pairs are made inside each half.
    FirstHalfInside,
    /// The policy learns which cores are faster.
    Learnt,
}

const NANOS_PER_MS: u64 = 1_000_000;

/// Signals that corrections of predictions need.
const COUNTED: [Signal; 2] = [Signal::Cycles, Signal::Instructions];

// All options are read before the machine is looked at, so that they can be checked without one.
fn open(topology: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let words = [
        ("false", CoreAsymmetry::Ignored),
        ("first-half", CoreAsymmetry::FirstHalf),
        ("first-half-inside", CoreAsymmetry::FirstHalfInside),
        ("true", CoreAsymmetry::Learnt),
    ];
    let asymmetry = options.one_of(
        "core-asymmetry",
        &words,
        "true, first-half, first-half-inside or false",
    )?;
    let learns = asymmetry == CoreAsymmetry::Learnt;
    let (period, alone_ms) = (options.count("period")?, options.count("alone-ms")?);
    let mut isolation = IsolationSchedule::new(period, alone_ms * NANOS_PER_MS);
    if learns {
        isolation = isolation.with_first_wait(asymmetry::FIRST_WAIT_QUANTA);
    }
    let model = read_model_option(options.name_or_file("model")?)?;
    let words = "slowdown, throughput or fairness";
    let objective = options.one_of("objective", &OBJECTIVE_WORDS, words)?;
    let homes = keeps_home(options, asymmetry)?.then(HomeNodes::default);
    let (corrects, may_estimate) = (options.flag("correction")?, options.flag("estimated")?);
    let active = options.share("active")?;
    check_requirements(topology, offers, may_estimate)?;
    let learnt = learns.then(|| CoreDisadvantages::from_offers(offers));
    let learnt = learnt.transpose();
    let pairs_inside = match asymmetry {
        CoreAsymmetry::FirstHalf => Some(false),
        CoreAsymmetry::FirstHalfInside => Some(true),
        CoreAsymmetry::Ignored | CoreAsymmetry::Learnt => None,
    };
    let halves = pairs_inside.map(|inside| CoreHalves::from_offers(offers, inside));
    Ok(Box::new(SymbioticPolicy {
        asymmetry: learnt.map_err(unfit_error)?,
        halves: halves.transpose().map_err(unfit_error)?,
        model: MachineModel::select_model(model, offers).map_err(unfit_error)?,
        objective,
        homes,
        corrects: corrects && offers.missing_signals(&COUNTED).is_empty(),
        active,
        isolation,
        stacks: AloneStacks::default(),
        performance: MeasuredPerformance::default(),
        partners: Partners::default(),
    }))
}

/// Reads the option `numa`. Returns true if threads stay on their nodes. Then cores of other nodes
/// are never used, and nothing can be learnt about them.
fn keeps_home(options: &PolicyOptions<'_>, asymmetry: CoreAsymmetry) -> Result<bool, PolicyError> {
    let requested = options.flag("numa")?;
    let asymmetric = asymmetry != CoreAsymmetry::Ignored;
    if requested && asymmetric && options.is_given("numa") {
        return Err(PolicyError::BadValue {
            policy: INFO.name,
            key: "numa",
            value: "true".to_owned(),
            expected: "false or no such option with core-asymmetry=true or first-half, which use all nodes",
        });
    }
    Ok(requested && !asymmetric)
}

/// Checks that CPUs share cores and that the machine has cycle stacks of a kind that may be used.
fn check_requirements(
    topology: &Topology,
    offers: &SignalOffers,
    may_estimate: bool,
) -> Result<(), PolicyError> {
    if topology.smt() < 2 {
        return Err(unfit_error(
            "pairs threads that share a core, and no CPUs share one here; use 'spread'",
        ));
    }
    if offers.tier_of(Signal::CycleStack) == Some(Tier::Sampling) && !may_estimate {
        return Err(unfit_error(
            "may not use estimated cycle stacks (estimated=false), and none are counted here",
        ));
    }
    Ok(())
}

fn unfit_error(why: impl Into<String>) -> PolicyError {
    PolicyError::Unfit {
        policy: INFO.name,
        why: why.into(),
    }
}

struct SymbioticPolicy {
    model: MachineModel,
    objective: SlowdownObjective,
    homes: Option<HomeNodes>,
    halves: Option<CoreHalves>,
    asymmetry: Option<CoreDisadvantages>,
    corrects: bool,
    active: f64,
    isolation: IsolationSchedule,
    stacks: AloneStacks,
    performance: MeasuredPerformance,
    partners: Partners,
}

impl Policy for SymbioticPolicy {
    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let mut decision = Decision::default();
        self.forget_exited(view.observation);
        let room = self.model.thread_capacity(view.topology);
        let crew = GroupedThreads::new(view, self.active, room, |t| self.partners.has(t.id));
        for (thread, why) in &crew.left {
            leave_to_os(thread, why, &mut decision);
        }
        if self.isolation.is_on() {
            self.performance.record_alone(view.topology, &crew);
            if let Some(asymmetry) = &mut self.asymmetry {
                asymmetry.record_alone(view.topology, &crew);
            }
        } else {
            self.learn_from_quantum(view.topology, &crew);
        }
        let measures = self.corrects || self.asymmetry.is_some();
        if measures && self.isolation.is_due() && self.partners.is_valid_for(&crew) {
            let groups = self.partners.groups();
            // On random cores, so that the cores' part can be separated from the threads'.
            let cores = self
                .asymmetry
                .as_ref()
                .map(|_| asymmetry::random_cores(view.topology, &crew, groups, rng));
            self.isolation
                .begin_measurement(view, &crew, groups, cores.as_deref(), &mut decision);
            return decision;
        }
        self.isolation.count_quantum();
        self.pair_threads(view, &crew, &mut decision);
        decision
    }
}

impl SymbioticPolicy {
    /// Learns stacks alone and corrections of the prediction from the last quantum.
    fn learn_from_quantum(&mut self, topology: &Topology, crew: &GroupedThreads<'_>) {
        if self.isolation.is_fresh() {
            return;
        }
        self.stacks.update(&self.model, topology, crew);
        if let Some(halves) = &mut self.halves {
            halves.record_quantum(crew);
        }
        if self.corrects {
            let asymmetry = self.asymmetry.as_ref();
            let faster = |thread: &ThreadObservation, than: usize| {
                let here = asymmetry.zip(core_of(topology, thread));
                here.map_or(1.0, |(learnt, core)| learnt.slowdown(thread.id, than, core))
            };
            self.performance
                .correct_predictions(crew, &self.partners, faster);
        }
    }

    fn pair_threads(&mut self, view: View<'_>, crew: &GroupedThreads<'_>, decision: &mut Decision) {
        let Some(stacks) = self.stacks.member_stacks(crew) else {
            let note = "no cycle stack of any active thread is known yet: none is placed";
            decision.report.notes.push(note.to_owned());
            for thread in &crew.members {
                leave_to_os(thread, "no stack is known yet", decision);
            }
            return;
        };
        let domains = match (&mut self.homes, &self.halves) {
            (Some(homes), _) => homes.divide_by_node(view.topology, crew),
            (None, Some(halves)) if halves.pairs_inside => halves.domains(view.topology, crew),
            (None, _) => vec![FillDomain::from_topology(view.topology, crew)],
        };
        self.partners.choose_groups(
            crew,
            &stacks,
            &self.model,
            self.performance.corrections(),
            self.objective,
            &domains,
        );
        decision.report.alternatives = self.partners.take_alternatives();
        if let Some(asymmetry) = &self.asymmetry {
            let groups = (&self.partners, self.objective);
            asymmetry::place_groups(view.topology, crew, groups, asymmetry, decision);
            return;
        }
        let (partners, groups) = (&self.partners, self.partners.groups());
        let halves = self.halves.as_ref().filter(|halves| !halves.pairs_inside);
        let seats = halves.map(|halves| halves.seats(view.topology, crew, groups));
        place_groups(
            view.topology,
            crew,
            groups,
            |group, core| match &seats {
                Some(seats) => seats[group].contains(&core),
                None => is_in_own_domain(&domains, &groups[group], core),
            },
            decision,
            |group, member| partners.reason(crew, group, member),
        );
    }

    fn forget_exited(&mut self, observation: &Observation) {
        let is_here = |id: ThreadId| observation.thread(id).is_some();
        if let Some(homes) = &mut self.homes {
            homes.retain(is_here);
        }
        if let Some(halves) = &mut self.halves {
            halves.retain(is_here);
        }
        self.stacks.retain(is_here);
        self.performance.retain(is_here);
        self.partners.retain(is_here);
    }
}
