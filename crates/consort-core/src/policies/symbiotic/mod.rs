//! `symbiotic`: the pairs that slow each other down least share the cores.
//!
//! Source: Feliu, Eyerman, Sahuquillo, Petit, "Symbiotic Job Scheduling on the IBM POWER8"
//! (HPCA 2016), sections 3 to 5.
//!
//! Observes a cycle stack per thread, and cycles and instructions where it corrects itself; by
//! default every 100 ms. The inverse model turns the stacks seen together into stacks alone
//! (`stacks`); the forward model predicts what every pair would do to each other; earlier
//! differences from the prediction correct it (`actual`); a minimum-weight perfect matching makes
//! the pairs, or a hierarchical one the groups where more than two share a core (`partners`);
//! groups go to the cores that take the fewest moves.
//!
//! Promises: of all pairings the one with the least predicted cost, exactly; nothing is known of
//! a thread but what its counters told.
//!
//! Beyond the paper: `numa` leaves threads on the node of their memory and pairs inside nodes, since
//! a thread that is moved away from its memory loses more than a better partner gives.
//!
//! `core-asymmetry` is for cores that are alike by name and are not (`asymmetry`): `first-half` puts
//! the threads that wait for memory most on the first half of the cores, the paper's experiment;
//! `true`, beyond the paper, learns which cores are worse for them and puts groups where they lose
//! least.
//!
//! Differs from the paper in how a thread's performance alone is measured. The paper stops all but
//! one thread of a core; here the threads of a core take turns on one of its PUs for as long, which
//! needs no right to stop anybody, and each is alone on the core while it runs (`isolation`).

mod asymmetry;
mod isolation;
mod machine_model;
mod measured_performance;
mod objective;
mod options;
mod partners;
mod stacks;
#[cfg(test)]
mod tests;

pub use self::asymmetry::CORE_DISADVANTAGE;
use self::asymmetry::{CoreDisadvantages, CoreHalves};
use self::isolation::IsolationSchedule;
use self::machine_model::{MachineModel, read_model_option};
use self::measured_performance::{MeasuredPerformance, core_of};
pub use self::objective::SlowdownObjective;
use self::options::{CoreAsymmetry, OPTIONS, keeps_home};
use self::partners::Partners;
use self::stacks::AloneStacks;
use super::grouping::{
    FillDomain, GroupedThreads, HomeNodes, is_in_own_domain, leave_to_os, place_groups,
};
use crate::ids::ThreadId;
use crate::plan::Decision;
use crate::policy::{
    ALL_USUAL, Policy, PolicyError, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng, View,
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

const NANOS_PER_MS: u64 = 1_000_000;

/// Signals that corrections of predictions need.
const COUNTED: [Signal; 2] = [Signal::Cycles, Signal::Instructions];

fn open(topology: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let asymmetry = CoreAsymmetry::from_options(options)?;
    let learns = asymmetry == CoreAsymmetry::Learnt;
    let isolation = isolation_schedule(options, learns)?;
    let asked = read_model_option(options.name_or_file("model")?)?;
    let objective = SlowdownObjective::from_options(options)?;
    let homes = keeps_home(options, asymmetry)?.then(HomeNodes::default);
    let (corrects, may_estimate) = (options.flag("correction")?, options.flag("estimated")?);
    let active = options.share("active")?;
    check_requirements(topology, offers, may_estimate)?;
    let learnt = learns
        .then(|| CoreDisadvantages::from_offers(offers))
        .transpose();
    let halves = (asymmetry == CoreAsymmetry::FirstHalf).then(|| CoreHalves::from_offers(offers));
    Ok(Box::new(SymbioticPolicy {
        asymmetry: learnt.map_err(unfit_error)?,
        halves: halves.transpose().map_err(unfit_error)?,
        trained: MachineModel::select_model(asked, offers).map_err(unfit_error)?,
        objective,
        homes,
        corrects: corrects && offers.missing_signals(&COUNTED).is_empty(),
        active,
        isolation,
        stacks: AloneStacks::default(),
        actual: MeasuredPerformance::default(),
        partners: Partners::default(),
    }))
}

fn isolation_schedule(
    options: &PolicyOptions<'_>,
    learns: bool,
) -> Result<IsolationSchedule, PolicyError> {
    let (period, alone_ms) = (options.count("period")?, options.count("alone-ms")?);
    let isolation = IsolationSchedule::new(period, alone_ms * NANOS_PER_MS);
    Ok(if learns {
        isolation.with_first_wait(asymmetry::FIRST_WAIT_QUANTA)
    } else {
        isolation
    })
}

/// Checks that PUs share cores and that stacks are told as they may be.
fn check_requirements(
    topology: &Topology,
    offers: &SignalOffers,
    may_estimate: bool,
) -> Result<(), PolicyError> {
    if topology.smt() < 2 {
        return Err(unfit_error(
            "pairs threads that share a core, and no PUs share one here; use 'spread'",
        ));
    }
    if offers.tier_of(Signal::CycleStack) == Some(Tier::Sampling) && !may_estimate {
        return Err(unfit_error(
            "may not use estimated cycle stacks (estimated=false), and none are counted here",
        ));
    }
    Ok(())
}

/// The policy.
struct SymbioticPolicy {
    trained: MachineModel,
    objective: SlowdownObjective,
    homes: Option<HomeNodes>,
    halves: Option<CoreHalves>,
    asymmetry: Option<CoreDisadvantages>,
    corrects: bool,
    active: f64,
    isolation: IsolationSchedule,
    stacks: AloneStacks,
    actual: MeasuredPerformance,
    partners: Partners,
}

impl Policy for SymbioticPolicy {
    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision {
        let mut decision = Decision::default();
        self.forget_exited(view.observation);
        let room = self.trained.thread_capacity(view.topology);
        let crew = GroupedThreads::new(view, self.active, room, |t| self.partners.has(t.id));
        for (thread, why) in &crew.left {
            leave_to_os(thread, why, &mut decision);
        }
        if self.isolation.is_on() {
            self.actual.record_alone(view.topology, &crew);
            self.asymmetry
                .iter_mut()
                .for_each(|asymmetry| asymmetry.record_alone(view.topology, &crew));
        } else {
            self.learn_from_quantum(view.topology, &crew);
        }
        let measures = self.corrects || self.asymmetry.is_some();
        if measures && self.isolation.is_due() && self.partners.is_valid_for(&crew) {
            self.measure_alone(view, &crew, rng, &mut decision);
            return decision;
        }
        self.isolation.count_quantum();
        self.pair_threads(view, &crew, &mut decision);
        decision
    }
}

impl SymbioticPolicy {
    /// Learns from the last quantum: stacks alone, and corrections of the prediction.
    fn learn_from_quantum(&mut self, topology: &Topology, crew: &GroupedThreads<'_>) {
        if self.isolation.is_fresh() {
            return;
        }
        self.stacks.update(&self.trained, topology, crew);
        self.halves
            .iter_mut()
            .for_each(|halves| halves.record_quantum(crew));
        if self.corrects {
            let asymmetry = self.asymmetry.as_ref();
            let faster = |thread: &ThreadObservation, than: usize| {
                let here = asymmetry.zip(core_of(topology, thread));
                here.map_or(1.0, |(learnt, core)| learnt.slowdown(thread.id, than, core))
            };
            self.actual
                .correct_predictions(crew, &self.partners, faster);
        }
    }

    /// Measures threads alone, on the cores where they are, or on random ones where cores are to be
    /// told apart.
    fn measure_alone(
        &mut self,
        view: View<'_>,
        crew: &GroupedThreads<'_>,
        rng: &mut PolicyRng,
        decision: &mut Decision,
    ) {
        let groups = self.partners.groups();
        let drawn = self.asymmetry.as_ref();
        let cores = drawn.map(|_| asymmetry::random_cores(view.topology, crew, groups, rng));
        self.isolation
            .begin_measurement(view, crew, groups, cores.as_deref(), decision);
    }

    fn pair_threads(&mut self, view: View<'_>, crew: &GroupedThreads<'_>, decision: &mut Decision) {
        let Some(stacks) = self.stacks.member_stacks(crew) else {
            let note = "no cycle stack of any active thread is known yet: all are left to the OS";
            decision.report.notes.push(note.to_owned());
            crew.members
                .iter()
                .for_each(|t| leave_to_os(t, "no stack is known yet", decision));
            return;
        };
        let domains = self.domains(view.topology, crew);
        self.partners.choose_groups(
            crew,
            &stacks,
            &self.trained,
            self.actual.corrections(),
            self.objective,
            &domains,
        );
        if let Some(asymmetry) = &self.asymmetry {
            let groups = (&self.partners, self.objective);
            asymmetry::place_groups(view.topology, crew, groups, asymmetry, decision);
            return;
        }
        let (partners, groups) = (&self.partners, self.partners.groups());
        let wanted = |group: usize, core: usize| is_in_own_domain(&domains, &groups[group], core);
        place_groups(
            view.topology,
            crew,
            groups,
            wanted,
            decision,
            |group, member| partners.reason(crew, group, member),
        );
    }

    /// The nodes, each with its threads; both halves; or the whole machine at once.
    fn domains(&mut self, topology: &Topology, crew: &GroupedThreads<'_>) -> Vec<FillDomain> {
        match (&mut self.homes, &self.halves) {
            (Some(homes), _) => homes.divide_by_node(topology, crew),
            (None, Some(halves)) => halves.domains(topology, crew),
            (None, None) => vec![FillDomain::from_topology(topology, crew)],
        }
    }

    fn forget_exited(&mut self, observation: &Observation) {
        let is_here = |id: ThreadId| observation.thread(id).is_some();
        self.homes
            .iter_mut()
            .for_each(|homes| homes.retain(is_here));
        self.halves
            .iter_mut()
            .for_each(|halves| halves.retain(is_here));
        self.stacks.retain(is_here);
        self.actual.retain(is_here);
        self.partners.retain(is_here);
    }
}

fn unfit_error(why: impl Into<String>) -> PolicyError {
    PolicyError::Unfit {
        policy: INFO.name,
        why: why.into(),
    }
}
