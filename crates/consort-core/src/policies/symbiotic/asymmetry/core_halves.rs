//! The paper's rule: the most memory-intensive programs go to the first half of the cores.
//!
//! Feliu et al., HPCA 2016, found the first five of its ten cores faster for such programs and, as
//! an experiment, put them there. Which cores are faster is given, not learnt; pairs are then made
//! inside each half.

use super::memory::MemoryShares;
use crate::ids::ThreadId;
use crate::policies::grouping::{FillDomain, GroupedThreads};
use crate::signal::SignalOffers;
use crate::topology::Topology;

/// The rule, with what it has seen of each thread.
#[derive(Debug)]
pub(in super::super) struct CoreHalves(MemoryShares);

impl CoreHalves {
    /// Finds out how a machine tells of waiting for memory.
    ///
    /// # Errors
    /// It does not; the text says what would be right.
    pub(in super::super) fn from_offers(offers: &SignalOffers) -> Result<Self, String> {
        MemoryShares::from_offers(offers).map(Self)
    }

    /// Takes what every thread did in the quantum that has just ended.
    pub(in super::super) fn record_quantum(&mut self, crew: &GroupedThreads<'_>) {
        crew.members.iter().for_each(|thread| self.0.update(thread));
    }

    pub(in super::super) fn retain(&mut self, is_here: impl Fn(ThreadId) -> bool) {
        self.0.retain(is_here);
    }

    /// The first half of the cores with its share of the threads, those that wait for memory most,
    /// and the second half with the others.
    pub(in super::super) fn domains(
        &self,
        topology: &Topology,
        crew: &GroupedThreads<'_>,
    ) -> Vec<FillDomain> {
        let cores = topology.cores().len();
        let first = cores.div_ceil(2);
        let share = |&member: &usize| self.0.share(crew.members[member].id);
        let mut members: Vec<usize> = (0..crew.members.len()).collect();
        members.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cmp(b)));
        let others = members.split_off((members.len() * first).div_ceil(cores.max(1)));
        [(members, 0..first), (others, first..cores)]
            .into_iter()
            .map(|(mut members, cores)| {
                members.sort_unstable();
                let cores = cores.collect();
                FillDomain { members, cores }
            })
            .collect()
    }
}
