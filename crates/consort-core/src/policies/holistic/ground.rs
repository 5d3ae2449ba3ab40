//! What machine this is and what runs on it: what the choice of a guide depends on.

use crate::ids::ThreadId;
use crate::policies::asymmetric::Groups;
use crate::sample::{Observation, ThreadObservation};
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

/// Share of a PU from which on a thread counts as one that wants to run.
const ACTIVE_SHARE: f64 = 0.05;

/// What of a machine decides who knows most about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    /// Whether threads can be exchanged between large and small cores.
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

impl Ground {
    pub(super) fn of(topology: &Topology) -> Self {
        Self {
            is_asymmetric: Groups::of(topology).iter().next().is_some(),
            smt: topology.smt(),
            nodes: topology.nodes().len(),
            llcs: topology.llcs().len(),
            cores: topology.cores().len(),
            pus: topology.pus().len(),
        }
    }

    /// In a sentence.
    pub(super) fn sentence(&self) -> String {
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

/// What runs on a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    /// Programs with threads that want to run.
    pub(super) programs: usize,
    /// Those with several such threads.
    pub(super) multithreaded: usize,
    /// Threads that want to run.
    pub(super) threads: usize,
    /// Programs that are there, those that are paused or asleep too.
    pub(super) present: usize,
}

impl Load {
    pub(super) fn of(observation: &Observation) -> Self {
        // Below the operating system what is observed are logical cores.
        let id = |t: &ThreadObservation| t.sample.occupant.unwrap_or(t.id);
        let present = observation.managed().map(|t| observation.program_of(id(t)));
        let wants = observation.managed().filter(|t| wants(observation, t));
        let mut programs: BTreeMap<_, BTreeSet<ThreadId>> = BTreeMap::new();
        for thread in wants {
            let program = observation.program_of(id(thread));
            programs.entry(program).or_default().insert(id(thread));
        }
        Self {
            present: present.collect::<BTreeSet<_>>().len(),
            programs: programs.len(),
            multithreaded: programs.values().filter(|ids| ids.len() > 1).count(),
            threads: programs.values().map(BTreeSet::len).sum(),
        }
    }
}

/// Whether a thread ran or waited for a PU for a noticeable part of the interval.
fn wants(observation: &Observation, thread: &ThreadObservation) -> bool {
    wanted_share(observation, thread) >= ACTIVE_SHARE
}

/// The share of the interval in which a thread ran or waited for a PU.
pub(super) fn wanted_share(observation: &Observation, thread: &ThreadObservation) -> f64 {
    if observation.interval_ns == 0 {
        return 0.0;
    }
    let wait = thread.sample.get(crate::signal::Signal::WaitTime);
    let wanted_ns = thread.sample.cpu_time_ns() + wait.unwrap_or(0.0);
    wanted_ns / observation.interval_ns as f64
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
        let load = |seen: &Observation| Load::of(seen);
        let expected = Load {
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
        let expected = Load {
            programs: 2,
            multithreaded: 0,
            threads: 2,
            present: 2,
        };
        assert_eq!(load(&seen), expected);
    }
}
