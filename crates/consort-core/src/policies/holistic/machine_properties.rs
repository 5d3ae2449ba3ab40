//! Kind of machine and load, on which the choice of a guide depends.

use crate::ids::{ProgramId, ThreadId};
use crate::policies::asymmetric::ExchangeGroups;
use crate::sample::{Observation, ThreadObservation};
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

/// Share of a PU from which on a thread counts as one that wants to run.
const ACTIVE_SHARE: f64 = 0.05;

/// Properties of a machine by which a policy is chosen for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MachineProperties {
    /// True where threads can be exchanged between large and small cores.
    pub(super) is_asymmetric: bool,
    /// Most PUs on a core.
    pub(super) smt: usize,
    /// NUMA nodes.
    pub(super) nodes: usize,
    /// LLC domains.
    pub(super) llcs: usize,
    /// Cores.
    pub(super) cores: usize,
    /// PUs.
    pub(super) pus: usize,
}

impl MachineProperties {
    pub(super) fn from_topology(topology: &Topology) -> Self {
        Self {
            is_asymmetric: ExchangeGroups::from_topology(topology)
                .iter()
                .next()
                .is_some(),
            smt: topology.smt(),
            nodes: topology.nodes().len(),
            llcs: topology.llcs().len(),
            cores: topology.cores().len(),
            pus: topology.pus().len(),
        }
    }

    /// Description in a sentence.
    pub(super) fn describe(&self) -> String {
        let kind = if self.is_asymmetric {
            "large and small cores"
        } else {
            "cores that are alike"
        };
        format!(
            "ground: {} {kind}, {} PUs, up to {} per core, {} LLC domains, {} NUMA nodes",
            self.cores, self.pus, self.smt, self.llcs, self.nodes
        )
    }
}

/// Load of a machine: the programs and threads that run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MachineLoad {
    /// Programs with threads that want to run.
    pub(super) programs: usize,
    /// Programs with several threads that want to run, or that once did: in a serial section
    /// siblings wait.
    pub(super) multithreaded: usize,
    /// Threads that want to run.
    pub(super) threads: usize,
    /// Programs that are there, those that are paused or asleep too.
    pub(super) present: usize,
}

/// Programs that are there and have had several threads that wanted to run.
#[derive(Clone, Debug, Default)]
pub(super) struct MultithreadedPrograms(BTreeSet<ProgramId>);

impl MachineLoad {
    /// Takes an interval in.
    pub(super) fn from_observation(
        observation: &Observation,
        families: &mut MultithreadedPrograms,
    ) -> Self {
        // Below the operating system what is observed are logical cores.
        let id = |t: &ThreadObservation| t.sample.occupant.unwrap_or(t.id);
        let present = observation
            .managed_threads()
            .map(|t| observation.program_of(id(t)));
        let present: BTreeSet<ProgramId> = present.collect();
        let wants = observation
            .managed_threads()
            .filter(|t| wants_to_run(observation, t));
        let mut programs: BTreeMap<ProgramId, BTreeSet<ThreadId>> = BTreeMap::new();
        for thread in wants {
            let program = observation.program_of(id(thread));
            programs.entry(program).or_default().insert(id(thread));
        }
        families.update(&programs, &present);
        let has_siblings = |program: &&ProgramId| families.0.contains(program);
        Self {
            present: present.len(),
            programs: programs.len(),
            multithreaded: programs.keys().filter(has_siblings).count(),
            threads: programs.values().map(BTreeSet::len).sum(),
        }
    }
}

impl MultithreadedPrograms {
    fn update(
        &mut self,
        active: &BTreeMap<ProgramId, BTreeSet<ThreadId>>,
        present: &BTreeSet<ProgramId>,
    ) {
        self.0.retain(|program| present.contains(program));
        let several = active.iter().filter(|(_, threads)| threads.len() > 1);
        self.0.extend(several.map(|(program, _)| *program));
    }
}

/// Returns true where a thread ran or waited for a PU for a noticeable part of the interval.
fn wants_to_run(observation: &Observation, thread: &ThreadObservation) -> bool {
    observation.wanted_share(thread) >= ACTIVE_SHARE
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
    fn a_program_in_a_serial_section_is_multithreaded_until_it_is_gone() {
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
