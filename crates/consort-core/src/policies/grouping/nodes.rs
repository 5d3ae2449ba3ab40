//! NUMA node of each thread: the one that its memory is on.

use super::GroupedThreads;
use crate::ids::ThreadId;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// A part of the machine that is filled by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillDomain {
    /// The threads that are for it, as ascending indices into the crew.
    pub members: Vec<usize>,
    /// Its cores, as ascending indices into [`Topology::cores`].
    pub cores: Vec<usize>,
}

impl FillDomain {
    /// Domain of the whole machine, for all threads.
    pub fn from_topology(topology: &Topology, crew: &GroupedThreads<'_>) -> Self {
        Self {
            members: (0..crew.members.len()).collect(),
            cores: (0..topology.cores().len()).collect(),
        }
    }
}

/// Says whether a group, by its members, may have a core: one of its own domain.
pub fn is_in_own_domain(domains: &[FillDomain], group: &[usize], core: usize) -> bool {
    let domain = domains
        .iter()
        .find(|domain| domain.cores.binary_search(&core).is_ok());
    let both = domain.zip(group.first());
    both.is_some_and(|(domain, first)| domain.members.binary_search(first).is_ok())
}

/// The node on which each thread was first seen; the kernel gives a thread memory where it first
/// touches it, so that is where its memory is.
#[derive(Debug, Default)]
pub struct HomeNodes(BTreeMap<ThreadId, usize>);

impl HomeNodes {
    /// Forgets threads that are gone.
    pub fn retain(&mut self, is_here: impl Fn(ThreadId) -> bool) {
        self.0.retain(|&id, _| is_here(id));
    }

    /// Divides the crew among the nodes: each thread to its own, as long as no node has more than
    /// its share of them by its cores; threads in excess go to the emptiest node.
    pub fn divide_by_node(
        &mut self,
        topology: &Topology,
        crew: &GroupedThreads<'_>,
    ) -> Vec<FillDomain> {
        let members = self.assign_nodes(topology, crew).into_iter();
        let domain = |(mut members, node): (Vec<usize>, &crate::topology::Domain)| {
            members.sort_unstable();
            FillDomain {
                members,
                cores: node.cores.clone(),
            }
        };
        members.zip(topology.nodes()).map(domain).collect()
    }

    fn assign_nodes(&mut self, topology: &Topology, crew: &GroupedThreads<'_>) -> Vec<Vec<usize>> {
        let cores = topology.cores().len().max(1);
        let nodes = topology.nodes();
        let share = |node: usize| (crew.members.len() * nodes[node].cores.len()).div_ceil(cores);
        let mut dealt: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        let mut beyond = Vec::new();
        for (index, thread) in crew.members.iter().enumerate() {
            let here = thread.last_pu.and_then(|pu| topology.core_of(pu));
            let here = here.map(|core| topology.cores()[core].node);
            let home = match (self.0.get(&thread.id), here) {
                (Some(&home), _) => Some(home),
                (None, Some(here)) => Some(*self.0.entry(thread.id).or_insert(here)),
                (None, None) => None,
            };
            match home.filter(|&node| node < nodes.len() && dealt[node].len() < share(node)) {
                Some(node) => dealt[node].push(index),
                None => beyond.push(index),
            }
        }
        for index in beyond {
            let room = |node: &usize| share(*node).saturating_sub(dealt[*node].len());
            let node = (0..nodes.len()).max_by_key(|node| (room(node), usize::MAX - node));
            node.into_iter().for_each(|node| dealt[node].push(index));
        }
        dealt
    }
}
