//! The policy that decides for now, and the change to another.
//!
//! For each kind of machine and load, single-purpose policies are listed with what they promise
//! there. A policy that knows more of what decides progress comes first. The first one that the
//! machine can feed and that fits is taken. The order does not depend on how policies did in
//! studies.

use super::machine_properties::{MachineLoad, MachineProperties, MultithreadedPrograms};
use super::{ForwardedOptions, HolisticObjective};
use crate::policies::{find, open};
use crate::policy::{Policy, PolicyError, PolicyForm, View};
use crate::sample::IntervalEnd;
use crate::signal::SignalOffers;
use crate::topology::Topology;

/// Quanta in succession in which another kind of machine or load must show before another policy
/// takes over, so that a program which starts or ends does not change the policy for a moment.
const QUANTA_TO_CHANGE: u32 = 4;

/// A policy that is open on this machine.
pub(super) struct ChosenPolicy {
    promise: PolicyPromise,
    /// Its usual quantum, ms.
    usual_ms: u64,
    pub(super) policy: Box<dyn Policy>,
}

impl ChosenPolicy {
    /// Its quantum in the form that the machine grants, ms.
    pub(super) fn quantum_ms(&self, granted: PolicyForm) -> u64 {
        self.policy.wishes().quantum_in_ms(granted, self.usual_ms)
    }
}

/// The policy that decides, if not the guidelines.
#[derive(Default)]
pub(super) struct PolicySelector {
    /// The kind of machine and load that the policy was chosen for.
    kind: Option<&'static str>,
    chosen: Option<ChosenPolicy>,
    /// Reasons why policies that know more were not taken.
    refusals: Vec<String>,
    /// Quanta in succession in which another kind has shown.
    others: u32,
    families: MultithreadedPrograms,
}

impl PolicySelector {
    /// Observes the present machine and load, and changes the policy if another kind has lasted.
    pub(super) fn update_choice(
        &mut self,
        view: View<'_>,
        ground: &MachineProperties,
        offers: &SignalOffers,
        passed: &ForwardedOptions,
    ) {
        let load = MachineLoad::from_observation(view.observation, &mut self.families);
        let (kind, promises) = preferences(ground, &load, passed.objective);
        let lasts = self.kind.is_some_and(|kind| is_lasting(kind, &load));
        if self.kind == Some(kind) || load.threads == 0 || lasts {
            self.others = 0;
            return;
        }
        self.others += u32::from(view.observation.ended == IntervalEnd::Quantum);
        if self.kind.is_some() && self.others < QUANTA_TO_CHANGE {
            return;
        }
        self.kind = Some(kind);
        self.others = 0;
        self.chosen = None;
        self.refusals.clear();
        for promise in promises {
            match open_policy(promise, view.topology, offers, passed) {
                Ok(chosen) => {
                    self.chosen = Some(chosen);
                    return;
                }
                Err(error) => self
                    .refusals
                    .push(format!("{} is not considered: {error}", promise.policy)),
            }
        }
    }

    pub(super) fn current_policy(&mut self) -> Option<&mut ChosenPolicy> {
        self.chosen.as_mut()
    }

    /// Sentences that say which policy decides and why.
    pub(super) fn describe_choice(&self) -> Vec<String> {
        let Some(kind) = self.kind else {
            return vec!["nothing has run yet".to_owned()];
        };
        let mut sentences = vec![match &self.chosen {
            Some(chosen) => {
                let PolicyPromise { policy, promise } = chosen.promise;
                format!("{policy} decides, since {kind}: {promise}")
            }
            None => format!("the guidelines decide, since {kind}"),
        }];
        sentences.extend(self.refusals.iter().cloned());
        sentences
    }
}

/// The policy to expect before anything has run: the first that fits.
pub(super) fn expected_policy(
    topology: &Topology,
    ground: &MachineProperties,
    offers: &SignalOffers,
    passed: &ForwardedOptions,
) -> Option<ChosenPolicy> {
    let (_, promises) = preferences(ground, &MachineLoad::default(), passed.objective);
    let opened = |promise| open_policy(promise, topology, offers, passed).ok();
    promises.iter().find_map(opened)
}

fn open_policy(
    promise: &PolicyPromise,
    topology: &Topology,
    offers: &SignalOffers,
    passed: &ForwardedOptions,
) -> Result<ChosenPolicy, PolicyError> {
    let info = find(promise.policy)?;
    Ok(ChosenPolicy {
        promise: *promise,
        usual_ms: info.quantum_ms,
        policy: open(topology, offers, &passed.spec(info))?,
    })
}

/// Programs from which on the choice of partners in a quantum matters: of two there is only one
/// pair, and what matters is how it shares the chip.
const PROGRAMS_TO_CHOOSE_FROM: usize = 3;

/// The kind of load for co-schedules.
const TOO_MANY: &str = "more multithreaded programs than cores for all of them";

/// A policy, and what it promises on a kind of machine and load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PolicyPromise {
    pub(crate) policy: &'static str,
    promise: &'static str,
}

const fn promise(policy: &'static str, promise: &'static str) -> PolicyPromise {
    PolicyPromise { policy, promise }
}

/// Policies for several threads per program on large and small cores: the threads that make
/// siblings wait decide the progress.
const WAITING_SIBLINGS: &[PolicyPromise] = &[
    promise(
        "utility",
        "the large core goes to the thread on which most of a program's time depends",
    ),
    promise(
        "kuths",
        "the large core goes to a thread for which siblings have probably waited",
    ),
    promise("hrrs", "the large core goes to every thread in turn"),
];

/// Policies for one thread per program on large and small cores: no thread waits for another.
const SINGLE_THREADS: &[PolicyPromise] = &[
    promise(
        "pie",
        "the large core goes to the thread that it is estimated to speed up most",
    ),
    promise("hrrs", "the large core goes to every thread in turn"),
];

/// Policies for one thread per program on large and small cores, if speeds are to be equal.
const SINGLE_THREADS_ALIKE: &[PolicyPromise] = &[
    promise(
        "fair-progress",
        "the large core goes to the thread that small cores have slowed down most",
    ),
    promise("hrrs", "the large core goes to every thread in turn"),
];

/// Policies for more multithreaded programs than cores for all of them: the choice of programs that
/// run together decides the progress.
const TOO_MANY_PROGRAMS: &[PolicyPromise] = &[
    promise(
        "fair-com",
        "programs share quanta so that no program's energy times delay grows, by their use of the bus",
    ),
    promise(
        "fair-mis",
        "programs share quanta so that no program's energy times delay grows, by their LLC misses",
    ),
];

/// Policies for CPUs that share a core: the choice of threads that share it decides the progress.
/// The automatic choice of a policy uses this order too.
pub(crate) const SHARED_CORES: &[PolicyPromise] = &[
    promise(
        "symbiotic",
        "of all pairings the one with the least predicted slowdown",
    ),
    promise(
        "workover",
        "threads that use the FPU share cores with those that do not",
    ),
];

/// The kind of machine and load, and the policies for it, the one that knows most first.
fn preferences(
    ground: &MachineProperties,
    load: &MachineLoad,
    objective: HolisticObjective,
) -> (&'static str, &'static [PolicyPromise]) {
    if ground.is_asymmetric && load.multithreaded > 0 {
        (
            "siblings wait for each other on large and small cores",
            WAITING_SIBLINGS,
        )
    } else if ground.is_asymmetric {
        let promises = match objective {
            HolisticObjective::Throughput => SINGLE_THREADS,
            HolisticObjective::Fairness => SINGLE_THREADS_ALIKE,
        };
        ("programs of one thread on large and small cores", promises)
    } else if load.multithreaded >= PROGRAMS_TO_CHOOSE_FROM && load.threads > ground.pus {
        (TOO_MANY, TOO_MANY_PROGRAMS)
    } else if ground.smt > 1 {
        ("CPUs share cores", SHARED_CORES)
    } else {
        ("one CPU per core", &[])
    }
}

/// Returns true if a kind of load lasts although it does not show: co-schedules pause programs and
/// take threads from them, so that the threads that want to run seem to fit.
fn is_lasting(kind: &str, load: &MachineLoad) -> bool {
    kind == TOO_MANY && load.present >= PROGRAMS_TO_CHOOSE_FROM
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::REGISTRY;
    use crate::topology::Topology;

    fn first(ground: &MachineProperties, load: MachineLoad) -> Option<&'static str> {
        first_for(HolisticObjective::Throughput, ground, load)
    }

    fn first_for(
        objective: HolisticObjective,
        ground: &MachineProperties,
        load: MachineLoad,
    ) -> Option<&'static str> {
        let (_, promises) = preferences(ground, &load, objective);
        promises.first().map(|p| p.policy)
    }

    fn load(programs: usize, each: usize) -> MachineLoad {
        MachineLoad {
            programs,
            multithreaded: if each > 1 { programs } else { 0 },
            threads: programs * each,
            present: programs,
        }
    }

    #[test]
    fn asymmetric_chips_prefer_large_core_policies() {
        let mut ground = MachineProperties::from_topology(&Topology::uniform(4, 2).unwrap());
        ground.is_asymmetric = true;
        assert_eq!(first(&ground, load(1, 4)), Some("utility"));
        assert_eq!(first(&ground, load(4, 1)), Some("pie"));
        let fair = |load| first_for(HolisticObjective::Fairness, &ground, load);
        assert_eq!(fair(load(4, 1)), Some("fair-progress"));
        // In a program it is its end that counts, whatever its threads have.
        assert_eq!(fair(load(1, 4)), Some("utility"));
        // Who gets the large core comes before who shares a quantum.
        assert_eq!(first(&ground, load(4, 4)), Some("utility"));
    }

    #[test]
    fn shared_cores_prefer_symbiotic() {
        let ground = MachineProperties::from_topology(&Topology::uniform(4, 2).unwrap());
        assert_eq!(first(&ground, load(8, 1)), Some("symbiotic"));
    }

    #[test]
    fn too_many_programs_prefer_coschedules() {
        let ground = MachineProperties::from_topology(&Topology::uniform(4, 1).unwrap());
        assert_eq!(first(&ground, load(3, 4)), Some("fair-com"));
        assert_eq!(first(&ground, load(2, 4)), None);
        // Enough cores for all of them.
        let large = MachineProperties::from_topology(&Topology::uniform(16, 1).unwrap());
        assert_eq!(first(&large, load(3, 4)), None);
    }

    #[test]
    fn co_schedules_last_while_programs_are_paused() {
        let one_runs = MachineLoad {
            present: 3,
            ..load(1, 4)
        };
        assert!(is_lasting(TOO_MANY, &one_runs));
        assert!(!is_lasting(TOO_MANY, &load(2, 4)));
        assert!(!is_lasting("CPUs share cores", &one_runs));
    }

    #[test]
    fn every_policy_that_is_preferred_exists() {
        let all = [
            WAITING_SIBLINGS,
            SINGLE_THREADS,
            SINGLE_THREADS_ALIKE,
            TOO_MANY_PROGRAMS,
            SHARED_CORES,
        ];
        for promise in all.into_iter().flatten() {
            let exists = REGISTRY.iter().any(|info| info.name == promise.policy);
            assert!(exists, "{}", promise.policy);
        }
    }
}
