//! Order of single-purpose policies for a kind of ground, by what they promise and what they need.
//!
//! Nothing here stands on how policies came out in studies. For each kind of ground the
//! policies are listed with what they promise there, those that know more of what decides
//! progress first; the first one that the machine can feed and that fits is taken.

use super::machine_properties::{MachineLoad, MachineProperties};
use super::options::HolisticObjective;

/// Programs from which on the choice of partners in a quantum matters: of two there is only one
/// pair, and what matters is how it shares the chip.
const PROGRAMS_TO_CHOOSE_FROM: usize = 3;

/// The kind of ground of co-schedules.
const TOO_MANY: &str = "more multithreaded programs than cores for all of them";

/// A policy that may be asked, and what it promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PolicyPromise {
    /// The policy's name.
    pub(crate) policy: &'static str,
    /// Its promise on this ground.
    pub(super) promise: &'static str,
}

const fn promise(policy: &'static str, promise: &'static str) -> PolicyPromise {
    PolicyPromise { policy, promise }
}

/// Policies for several threads per program on large and small cores: what makes siblings wait
/// decides.
const WAITING_SIBLINGS: &[PolicyPromise] = &[
    promise(
        "utility",
        "the large core goes to whom most of a program's time depends on",
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
        "the large core goes to whom it is estimated to speed up most",
    ),
    promise("hrrs", "the large core goes to every thread in turn"),
];

/// Policies for one thread per program on large and small cores, where speeds are to be alike.
const SINGLE_THREADS_ALIKE: &[PolicyPromise] = &[
    promise(
        "fair-progress",
        "the large core goes to whom small cores have slowed down most",
    ),
    promise("hrrs", "the large core goes to every thread in turn"),
];

/// Policies for more multithreaded programs than cores for all of them: the choice of programs that
/// run together decides.
const TOO_MANY_PROGRAMS: &[PolicyPromise] = &[
    promise(
        "fair-com",
        "programs share quanta so that nobody's energy times delay grows, by their use of the bus",
    ),
    promise(
        "fair-mis",
        "programs share quanta so that nobody's energy times delay grows, by their LLC misses",
    ),
];

/// Policies for PUs that share a core: the choice of threads that share it decides. The automatic
/// choice of a policy keeps to this order too.
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

/// The policies to ask on a ground under a load, the one that knows most first, and the kind of
/// ground that they are for.
pub(super) fn preferences(
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
        ("PUs share cores", SHARED_CORES)
    } else {
        ("one PU per core", &[])
    }
}

/// Returns true where a kind of ground lasts though it does not show: co-schedules pause programs
/// and take threads from them, so that what wants to run seems to fit.
pub(super) fn is_lasting(kind: &str, load: &MachineLoad) -> bool {
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
    fn asymmetric_chips_are_for_those_that_give_the_large_core_away() {
        let ground = MachineProperties {
            is_asymmetric: true,
            ..MachineProperties::from_topology(&Topology::uniform(4, 2).unwrap())
        };
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
    fn cores_with_several_pus_are_for_the_prediction_of_pairs() {
        let ground = MachineProperties::from_topology(&Topology::uniform(4, 2).unwrap());
        assert_eq!(first(&ground, load(8, 1)), Some("symbiotic"));
    }

    #[test]
    fn too_many_multithreaded_programs_are_for_co_schedules_and_a_pair_is_not() {
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
        assert!(!is_lasting("PUs share cores", &one_runs));
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
