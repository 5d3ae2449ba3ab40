//! The processor of a guest, and the CPUs that it then shows.

use consort_core::PuId;
use consort_core::topology::{CoreType, PuFacts, Topology, TopologyError};

/// Memory of one NUMA node. Enough for a kernel, an unpacked debug build and some threads.
const NODE_MIB: u32 = 768;

/// Sockets, cores, SMT ways and NUMA nodes of a guest.
///
/// CPUs are numbered way first: CPUs `0..threads` are the ways of core 0. This is how qemu numbers
/// them, and unlike what most firmware does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestTopology {
    /// Packages.
    pub sockets: u32,
    /// Cores per package.
    pub cores: u32,
    /// SMT ways per core.
    pub threads: u32,
    /// NUMA nodes; each has an equal consecutive run of CPUs.
    pub nodes: u32,
    /// Distance between two nodes as the firmware reports it; a node is at 10 from itself.
    pub distance: u32,
}

impl GuestTopology {
    /// One package and node with `cores` cores of `threads` ways.
    #[must_use]
    pub fn smt(cores: u32, threads: u32) -> Self {
        Self {
            sockets: 1,
            cores,
            threads,
            nodes: 1,
            distance: 20,
        }
    }

    /// Number of CPUs.
    #[must_use]
    pub fn pus(self) -> u32 {
        self.sockets * self.cores * self.threads
    }

    /// Topology of the guest as `consort-core` has it.
    ///
    /// # Errors
    /// [`TopologyError`] if a number is 0 or a node ends within a core.
    pub fn topology(self) -> Result<Topology, TopologyError> {
        let facts = (0..self.pus()).map(|pu| {
            let core = pu / self.threads;
            PuFacts {
                pu: PuId(pu),
                package: core / self.cores,
                node: self.node_of(pu),
                core,
                llc: core / self.cores,
                l2: Some(core),
                core_type: 0,
            }
        });
        Topology::new(facts.collect(), vec![CoreType::uniform()])
    }

    /// The arguments that make qemu show this machine.
    pub(crate) fn qemu_arguments(self) -> Vec<String> {
        let mut arguments = vec![
            "-smp".into(),
            format!(
                "{},sockets={},cores={},threads={}",
                self.pus(),
                self.sockets,
                self.cores,
                self.threads
            ),
            "-m".into(),
            format!("{}M", NODE_MIB * self.nodes),
        ];
        if self.nodes > 1 {
            arguments.extend((0..self.nodes).flat_map(|node| self.node_arguments(node)));
            arguments.extend(self.distance_arguments());
        }
        arguments
    }

    fn node_of(self, pu: u32) -> u32 {
        pu * self.nodes / self.pus()
    }

    fn node_arguments(self, node: u32) -> [String; 4] {
        let first = node * self.pus() / self.nodes;
        let last = (node + 1) * self.pus() / self.nodes - 1;
        [
            "-object".into(),
            format!("memory-backend-ram,id=memory{node},size={NODE_MIB}M"),
            "-numa".into(),
            format!("node,nodeid={node},memdev=memory{node},cpus={first}-{last}"),
        ]
    }

    fn distance_arguments(self) -> impl Iterator<Item = String> {
        let pairs = (0..self.nodes).flat_map(move |a| (0..self.nodes).map(move |b| (a, b)));
        pairs.filter(|(a, b)| a < b).flat_map(move |(a, b)| {
            [
                "-numa".into(),
                format!("dist,src={a},dst={b},val={}", self.distance),
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn smt_ways_are_neighbours() {
        let topology = GuestTopology::smt(4, 2).topology().unwrap();
        assert_eq!(topology.cores().len(), 4);
        assert_eq!(topology.cores()[1].pus, [PuId(2), PuId(3)]);
    }

    #[test]
    fn numa_arguments_are_per_node() {
        let guest = GuestTopology {
            sockets: 2,
            nodes: 2,
            distance: 21,
            ..GuestTopology::smt(2, 2)
        };
        let arguments = guest.qemu_arguments().join(" ");
        assert!(arguments.contains("-smp 8,sockets=2,cores=2,threads=2 -m 1536M"));
        assert!(arguments.contains("node,nodeid=1,memdev=memory1,cpus=4-7"));
        assert!(arguments.ends_with("-numa dist,src=0,dst=1,val=21"));
    }

    proptest! {
        #[test]
        fn every_pu_has_a_core_of_the_asked_width(sockets in 1u32..3, cores in 1u32..9, threads in 1u32..9) {
            let guest = GuestTopology { sockets, nodes: sockets, ..GuestTopology::smt(cores, threads) };
            let topology = guest.topology().unwrap();
            prop_assert_eq!(topology.pus().len() as u32, guest.pus());
            prop_assert_eq!(topology.cores().len() as u32, sockets * cores);
            prop_assert!(topology.cores().iter().all(|c| c.pus.len() as u32 == threads));
            prop_assert_eq!(topology.nodes().len() as u32, sockets);
        }
    }
}
