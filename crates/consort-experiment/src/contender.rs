//! Contenders of a comparison: a policy on an operating system, or an operating system alone.

use super::coschedule;
use super::error::ExperimentError;
use super::oracle::{self, OracleGoal, OraclePolicy, SharedDemands};
use super::slots::SearchGoal;
use crate::ExperimentContext;
use consort_core::coscheduling::CoscheduleSlot;
use consort_core::policy::{
    POLICY_ALIASES, Policy, PolicyError, PolicyResult, PolicySpec, check_signals, published_name,
};
use consort_core::{Signal, SignalOffers, Topology, hint, policies};
use consort_sim::chip::Chip;
use consort_sim::engine::EngineError;
use consort_sim::workload::Workload;
use std::fmt;
use std::sync::Arc;

/// Operating systems that are contenders by name, with no policy on top. `random` is a policy
/// here, as on live machines.
const SYSTEMS: [&str; 6] = [
    "linux",
    "linux-2.6",
    "linux-acmp",
    "linux-grouped",
    "linux-itmt",
    "pinned",
];

/// The policy that leaves everything to the operating system.
const NO_POLICY: &str = "none";

/// A policy with its options and the operating system beneath it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    name: String,
    who: ContenderKind,
    os: String,
}

/// Decider of placements.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ContenderKind {
    Policy(PolicySpec),
    Oracle(OracleGoal),
    /// The best round of co-schedules.
    Coschedule(CoscheduleSource),
    Custom(CustomPolicy),
}

/// Co-schedules, searched for or given.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CoscheduleSource {
    goal: SearchGoal,
    quantum_ms: u64,
    /// `None` until they have been found.
    slots: Option<Arc<Vec<CoscheduleSlot>>>,
}

impl Contender {
    /// Reads `workover:margin=0.1`, `oracle`, `oracle-coschedule`, or the name of an operating system's model.
    ///
    /// # Errors
    /// Unknown names, options or values; policies for live machines only.
    pub fn new(text: &str, os: &str) -> Result<Self, ExperimentError> {
        consort_sim::os::find(os).map_err(EngineError::from)?;
        let mut spec: PolicySpec = text.parse()?;
        spec.attach(consort_describe::input::read_if_file)?;
        let mut system = os;
        if let Some(named) = SYSTEMS.iter().find(|system| **system == spec.name) {
            system = named;
            spec.name = NO_POLICY.to_owned();
        }
        Ok(Self {
            name: published_name(text).into_owned(),
            who: contender_kind(spec)?,
            os: system.to_owned(),
        })
    }

    /// A policy from outside of the registry, on an operating system.
    ///
    /// # Errors
    /// An unknown operating system.
    pub fn from_policy(policy: CustomPolicy, os: &str) -> Result<Self, ExperimentError> {
        consort_sim::os::find(os).map_err(EngineError::from)?;
        Ok(Self {
            name: policy.name.clone(),
            who: ContenderKind::Custom(policy),
            os: os.to_owned(),
        })
    }

    /// The co-schedules that are given, in turn; their programs are numbered in the order of the
    /// workload.
    pub fn from_slots(name: &str, os: &str, slots: &[CoscheduleSlot], quantum_ms: u64) -> Self {
        Self {
            name: name.to_owned(),
            who: ContenderKind::Coschedule(CoscheduleSource {
                goal: SearchGoal::default(),
                quantum_ms,
                slots: Some(Arc::new(slots.to_vec())),
            }),
            os: os.to_owned(),
        }
    }

    /// The same contender, ready to run a workload on a machine: what it has to know before is found
    /// on the context's workers. Each run of one that is not ready does that anew.
    ///
    /// # Errors
    /// More programs or cores than can be searched.
    pub fn prepare(
        &self,
        chip: &Arc<Chip>,
        workload: &Workload,
        context: &ExperimentContext<'_>,
    ) -> Result<Self, ExperimentError> {
        let mut ready = self.clone();
        if let ContenderKind::Coschedule(round) = &mut ready.who
            && round.slots.is_none()
        {
            let found = coschedule::search_slots(chip, workload, round.goal, context)?;
            round.slots = Some(Arc::new(found));
        }
        Ok(ready)
    }

    /// True if [`Contender::prepare`] would find nothing new.
    pub(super) fn is_ready(&self) -> bool {
        !matches!(&self.who, ContenderKind::Coschedule(round) if round.slots.is_none())
    }

    /// Its text, for example `workover:margin=0.1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the operating system's model.
    pub fn os(&self) -> &str {
        &self.os
    }

    /// True if it is an operating system without a policy.
    pub fn leaves_all_to_os(&self) -> bool {
        matches!(&self.who, ContenderKind::Policy(spec) if spec.name == NO_POLICY)
    }

    /// True if it decides by what only the simulation knows, so that it bounds policies and is none
    /// that can be run.
    pub fn is_bound(&self) -> bool {
        matches!(
            self.who,
            ContenderKind::Oracle(_) | ContenderKind::Coschedule(_)
        )
    }

    /// The only signals that the policy uses; empty for all that are usual.
    pub(super) fn used_signals(&self, topology: &Topology) -> &'static [Signal] {
        let info = match &self.who {
            ContenderKind::Policy(spec) => policies::find(&spec.name).ok(),
            _ => None,
        };
        info.map_or(&[], |info| (info.uses)(topology))
    }

    /// Demands that the machine shares with its policy; only for the contender that may know them.
    pub(super) fn shared_demands(&self) -> Option<SharedDemands> {
        matches!(self.who, ContenderKind::Oracle(_)).then(SharedDemands::default)
    }

    /// The policy, open on a machine that offers these signals, and its usual quantum, ms.
    ///
    /// # Errors
    /// Needs that the machine does not meet; a policy that would be of no use there.
    pub(super) fn open(
        &self,
        chip: &Arc<Chip>,
        offers: &SignalOffers,
        truth: Option<&SharedDemands>,
    ) -> Result<(Box<dyn Policy>, u64), ExperimentError> {
        match &self.who {
            ContenderKind::Policy(spec) => {
                let policy = policies::open(chip.topology(), offers, spec)?;
                Ok((policy, policies::find(&spec.name)?.quantum_ms))
            }
            ContenderKind::Oracle(goal) => {
                let truth = truth.cloned().unwrap_or_default();
                let oracle = OraclePolicy::new(chip, &truth, *goal);
                Ok((Box::new(oracle), oracle::QUANTUM_MS))
            }
            ContenderKind::Coschedule(round) => {
                let slots = round.slots.as_deref().map_or(&[][..], Vec::as_slice);
                let policy = policies::fixed_slot_policy(slots, round.quantum_ms);
                Ok((policy, round.quantum_ms))
            }
            ContenderKind::Custom(policy) => {
                check_signals(&policy.name, &policy.needs, offers)?;
                Ok(((policy.open)(chip.topology(), offers)?, policy.quantum_ms))
            }
        }
    }
}

fn contender_kind(spec: PolicySpec) -> Result<ContenderKind, ExperimentError> {
    if spec.name == oracle::NAME {
        return Ok(ContenderKind::Oracle(oracle::parse_goal(&spec.options)?));
    }
    if spec.name == coschedule::NAME {
        return Ok(ContenderKind::Coschedule(CoscheduleSource {
            goal: coschedule::parse_goal(&spec.options)?,
            quantum_ms: coschedule::QUANTUM_MS,
            slots: None,
        }));
    }
    let info = policies::check(&spec).map_err(suggest_contender)?;
    if !info.simulated {
        return Err(ExperimentError::LiveOnly(info.name));
    }
    Ok(ContenderKind::Policy(spec))
}

/// The same error; an unknown name is compared with those of all contenders.
fn suggest_contender(error: PolicyError) -> PolicyError {
    match error {
        PolicyError::Unknown { name, .. } => {
            let simulated = policies::REGISTRY.iter().filter(|info| info.simulated);
            let plain = POLICY_ALIASES.iter().map(|(alias, _)| *alias);
            let known = simulated.map(|info| info.name).chain(plain);
            let known = known.chain([oracle::NAME, coschedule::NAME]).chain(SYSTEMS);
            let hint = hint(&name, known);
            PolicyError::Unknown { name, hint }
        }
        other => other,
    }
}

/// Opens a policy on a machine; each run has one of its own.
type OpenPolicy = Arc<dyn Fn(&Topology, &SignalOffers) -> PolicyResult + Send + Sync>;

/// A policy from outside of the registry, for example from Python.
#[derive(Clone)]
pub struct CustomPolicy {
    /// Its name.
    pub name: String,
    /// Signals without which it cannot decide.
    pub needs: Vec<Signal>,
    /// Its usual quantum, ms.
    pub quantum_ms: u64,
    /// Opens one for each run.
    pub open: OpenPolicy,
}

impl fmt::Debug for CustomPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl PartialEq for CustomPolicy {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.open, &other.open)
    }
}

impl Eq for CustomPolicy {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use crate::testing::{chip, pair};
    use consort_core::policies;

    #[test]
    fn operating_systems_are_contenders_without_a_policy() {
        let linux = Contender::new("linux", "pinned").unwrap();
        assert_eq!((linux.name(), linux.os()), ("linux", "linux"));
        let workover = Contender::new("workover:margin=0.1", "linux-itmt").unwrap();
        assert_eq!(workover.os(), "linux-itmt");
        let error = |name| Contender::new(name, "linux").unwrap_err().to_string();
        let meant = "unknown policy 'linx'; did you mean 'linux'?";
        assert_eq!(error("linx"), meant);
        assert!(error("orcle").ends_with("did you mean 'oracle'?"));
        assert!(error("fastest").contains("known: workover"));
        assert!(Contender::new("linux:x=1", "linux").is_err());
    }

    fn none(needs: &[Signal]) -> CustomPolicy {
        CustomPolicy {
            name: "mine".to_owned(),
            needs: needs.to_vec(),
            quantum_ms: 100,
            open: Arc::new(|topology, offers| {
                policies::open(topology, offers, &"workover".parse()?)
            }),
        }
    }

    fn experiment() -> Experiment {
        Experiment {
            quantum: Some(std::time::Duration::from_millis(100)),
            ..Experiment::new(&chip("bulldozer-6282se"), pair(["hmmer", "povray"]), 0.5)
        }
    }

    #[test]
    fn custom_policy_runs_like_the_registered_one() {
        let experiment = experiment();
        let work = experiment.measure_work(1).unwrap();
        let run = |contender: &Contender| experiment.run(contender, &work, 1, None).unwrap();
        let custom = Contender::from_policy(none(&[Signal::CpuTime]), "linux").unwrap();
        let ours = run(&custom);
        let theirs = run(&Contender::new("workover", "linux").unwrap());
        assert_eq!((ours.policy.as_str(), ours.os.as_str()), ("mine", "linux"));
        assert_eq!(
            (ours.programs, ours.energy_j),
            (theirs.programs, theirs.energy_j)
        );
    }

    #[test]
    fn unmet_needs_are_named() {
        let experiment = experiment();
        let work = experiment.measure_work(1).unwrap();
        let contender = Contender::from_policy(none(&[Signal::CodeFootprint]), "linux").unwrap();
        let error = experiment.run(&contender, &work, 1, None).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("policy mine needs code-footprint, but this machine offers cpu-time"),
            "{text}"
        );
        assert!(Contender::from_policy(none(&[]), "linus").is_err());
    }
}
