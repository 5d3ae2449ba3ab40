//! The machine as a tree of parts, so that parts of the same shape can be exchanged.

use crate::ids::PuId;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// A part of the machine: a PU, or parts that share something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MachineTree {
    /// A PU.
    Pu(PuId),
    /// Parts, those of the same shape side by side.
    Parts(Vec<MachineTree>),
}

/// Shape of a part; two parts of the same shape can be exchanged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PartShape {
    /// A PU of a core type.
    Pu(usize),
    /// The shapes of the parts, in order.
    Parts(Vec<PartShape>),
}

impl MachineTree {
    /// Tree of a machine: packages of nodes of LLC domains of level 2 domains of cores of PUs.
    pub(super) fn from_topology(topology: &Topology) -> Self {
        let leaf = |pu: PuId| Some((path(topology, pu)?, pu));
        let leaves = topology.pus().iter().filter_map(leaf).collect();
        Self::nest_parts(leaves, topology)
    }

    fn nest_parts(leaves: Vec<(Vec<usize>, PuId)>, topology: &Topology) -> Self {
        if let [(path, pu)] = &leaves[..]
            && path.is_empty()
        {
            return Self::Pu(*pu);
        }
        let mut groups: BTreeMap<usize, Vec<(Vec<usize>, PuId)>> = BTreeMap::new();
        for (at, (path, pu)) in leaves.into_iter().enumerate() {
            // Below the core, each PU is a part of its own.
            let key = path.first().map_or(at, |&key| key);
            let rest = path.get(1..).unwrap_or_default().to_vec();
            groups.entry(key).or_default().push((rest, pu));
        }
        let parts = groups
            .into_values()
            .map(|group| Self::nest_parts(group, topology));
        Self::join_parts(parts.collect(), topology)
    }

    /// Joins parts; one that is all of another is that one.
    fn join_parts(mut parts: Vec<Self>, topology: &Topology) -> Self {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        parts.sort_by_cached_key(|part| part.shape(topology));
        Self::Parts(parts)
    }

    /// Its PUs, in its order.
    pub(super) fn pus(&self) -> Vec<PuId> {
        match self {
            Self::Pu(pu) => vec![*pu],
            Self::Parts(parts) => parts.iter().flat_map(Self::pus).collect(),
        }
    }

    /// Its shape.
    pub(super) fn shape(&self, topology: &Topology) -> PartShape {
        match self {
            Self::Pu(pu) => {
                let core = topology
                    .core_of(*pu)
                    .and_then(|core| topology.cores().get(core));
                PartShape::Pu(core.map_or(0, |core| core.core_type))
            }
            Self::Parts(parts) => {
                PartShape::Parts(parts.iter().map(|p| p.shape(topology)).collect())
            }
        }
    }
}

/// Path to a PU, from the largest part down to its core.
fn path(topology: &Topology, pu: PuId) -> Option<Vec<usize>> {
    let number = topology.core_of(pu)?;
    let core = topology.cores().get(number)?;
    let l2 = topology.l2s().iter().position(|d| d.pus.contains(pu));
    let l2 = l2.unwrap_or(usize::MAX);
    Some(vec![core.package, core.node, core.llc, l2, number])
}
