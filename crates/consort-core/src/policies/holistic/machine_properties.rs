//! Kind of machine and load, on which the choice of a policy depends.

use crate::ids::{ProgramId, ThreadId};
use crate::policies::asymmetric::ExchangeGroups;
use crate::sample::Observation;
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

/// Share of a CPU from which on a thread counts as one that wants to run.
const ACTIVE_SHARE: f64 = 0.05;

/// Properties of a machine by which a policy is chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MachineProperties {
    /// True if threads can be exchanged between large and small cores.
    pub(super) is_asymmetric: bool,
    /// Most CPUs on a core.
    pub(super) smt: usize,
    nodes: usize,
    llcs: usize,
    cores: usize,
    pub(super) pus: usize,
}

impl MachineProperties {
    pub(super) fn from_topology(topology: &Topology) -> Self {
        let groups = ExchangeGroups::from_topology(topology);
        Self {
            is_asymmetric: groups.iter().next().is_some(),
            smt: topology.smt(),
            nodes: topology.nodes().len(),
            llcs: topology.llcs().len(),
            cores: topology.cores().len(),
            pus: topology.pus().len(),
        }
    }

    /// Describes the machine in a sentence.
    pub(super) fn describe(&self) -> String {
        let kind = if self.is_asymmetric {
            "large and small cores"
        } else {
            "cores that are alike"
        };
        format!(
            "ground: {} {kind}, {} CPUs, up to {} per core, {} LLC domains, {} NUMA nodes",
            self.cores, self.pus, self.smt, self.llcs, self.nodes
        )
    }
}

/// The programs and threads that run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MachineLoad {
    /// Programs with threads that want to run.
    pub(super) programs: usize,
    /// Programs with several threads that want to run or once did, because siblings wait in a
    /// serial section.
    pub(super) multithreaded: usize,
    /// Threads that want to run.
    pub(super) threads: usize,
    /// All programs, also paused and sleeping ones.
    pub(super) present: usize,
}

/// Present programs that have had several threads that wanted to run.
#[derive(Clone, Debug, Default)]
pub(super) struct MultithreadedPrograms(BTreeSet<ProgramId>);

impl MachineLoad {
    /// Computes the load of an interval, and updates `families`.
    pub(super) fn from_observation(
        observation: &Observation,
        families: &mut MultithreadedPrograms,
    ) -> Self {
        let mut present = BTreeSet::new();
        let mut programs: BTreeMap<ProgramId, BTreeSet<ThreadId>> = BTreeMap::new();
        for thread in observation.managed_threads() {
            // Below the operating system, logical cores are observed with their occupants.
            let id = thread.sample.occupant.unwrap_or(thread.id);
            let program = observation.program_of(id);
            present.insert(program);
            if observation.wanted_share(thread) >= ACTIVE_SHARE {
                programs.entry(program).or_default().insert(id);
            }
        }
        families.0.retain(|program| present.contains(program));
        let several = programs.iter().filter(|(_, threads)| threads.len() > 1);
        families.0.extend(several.map(|(program, _)| *program));
        let has_siblings = |program: &&ProgramId| families.0.contains(program);
        Self {
            present: present.len(),
            programs: programs.len(),
            multithreaded: programs.keys().filter(has_siblings).count(),
            threads: programs.values().map(BTreeSet::len).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{observation_with_activity, thread_id};

    #[test]
    fn sleepers_are_no_load_and_programs_count_once() {
        let topology = Topology::uniform(4, 1).unwrap();
        let mut seen =
            observation_with_activity(&topology, &[(1, 0.0, 1.0), (2, 0.0, 0.5), (3, 0.0, 0.0)]);
        let load = |seen: &Observation| {
            MachineLoad::from_observation(seen, &mut MultithreadedPrograms::default())
        };
        let expected = MachineLoad {
            programs: 1,
            multithreaded: 1,
            threads: 2,
            present: 1,
        };
        assert_eq!(load(&seen), expected);
        // The same two seen as occupants of logical cores, one of another program.
        seen.threads[0].sample.occupant = Some(ThreadId {
            pid: 9,
            ..thread_id(9)
        });
        let expected = MachineLoad {
            programs: 2,
            multithreaded: 0,
            threads: 2,
            present: 2,
        };
        assert_eq!(load(&seen), expected);
    }

    #[test]
    fn program_in_serial_section_stays_multithreaded() {
        let topology = Topology::uniform(4, 1).unwrap();
        let of = |active: &[(u32, f64, f64)], families: &mut MultithreadedPrograms| {
            MachineLoad::from_observation(&observation_with_activity(&topology, active), families)
                .multithreaded
        };
        let mut families = MultithreadedPrograms::default();
        let (serial, parallel) = (
            [(1, 0.0, 1.0), (2, 0.0, 0.0)],
            [(1, 0.0, 1.0), (2, 0.0, 1.0)],
        );
        assert_eq!(of(&serial, &mut families), 0);
        assert_eq!(of(&parallel, &mut families), 1);
        assert_eq!(of(&serial, &mut families), 1);
        of(&[], &mut families);
        assert_eq!(of(&serial, &mut families), 0);
    }
}
