//! Location of memory: on all nodes, or only on those that the description names.
//!
//! A kernel gives a thread memory on the node that it runs on when it first touches it, and where
//! that node has none, on the nearest that has (Linux, `Documentation/mm/numa.rst`, fallback zone
//! lists). Nearest here is the same package before others, then the lowest number.

use super::{Chip, PuPlace};

impl Chip {
    /// The node that holds the memory of a thread that first touches it on `node`.
    pub fn memory_node(&self, node: usize) -> usize {
        let with = self.spec().numa.as_ref();
        let Some(with) = with.and_then(|numa| numa.memory_nodes.as_ref()) else {
            return node;
        };
        let package = |node: usize| node / self.spec().layout.nodes_per_package.max(1) as usize;
        let distance = |&there: &usize| (there != node, package(there) != package(node), there);
        let with = with.iter().map(|&there| there as usize);
        with.min_by_key(distance).unwrap_or(node)
    }

    /// Latency of memory on node `home` from a place, behind the LLC and idle, ns.
    pub fn memory_latency_ns(&self, place: PuPlace, home: usize) -> f64 {
        let spec = self.spec();
        let hop = spec.numa.as_ref().map_or(0.0, |numa| {
            let package = home / spec.layout.nodes_per_package.max(1) as usize;
            match (place.node == home, place.package == package) {
                (true, _) => 0.0,
                (false, true) => numa.same_package_ns,
                (false, false) => numa.other_package_ns,
            }
        });
        spec.memory.latency_ns + hop
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::presets;

    /// Two packages of two nodes, with memory on those of `with`.
    fn chip(with: Option<&[u32]>) -> Chip {
        let mut spec = presets::find("power8").unwrap();
        spec.layout.packages = 2;
        let numa = spec.numa.as_mut().unwrap();
        numa.memory_nodes = with.map(<[u32]>::to_vec);
        Chip::new(&spec, Some(1)).unwrap()
    }

    fn homes(with: Option<&[u32]>) -> Vec<usize> {
        let chip = chip(with);
        (0..4).map(|node| chip.memory_node(node)).collect()
    }

    #[test]
    fn memory_is_on_the_nearest_node_that_has_any() {
        assert_eq!(homes(None), [0, 1, 2, 3]);
        assert_eq!(homes(Some(&[1])), [1, 1, 1, 1]);
        assert_eq!(homes(Some(&[3, 0])), [0, 0, 3, 3]);
        assert_eq!(homes(Some(&[2, 3])), [2, 2, 2, 3]);
    }

    #[test]
    fn memory_is_farther_the_farther_the_node() {
        let chip = chip(None);
        let first = chip.places()[0];
        let all = (0..4).map(|home| chip.memory_latency_ns(first, home));
        assert_eq!(all.collect::<Vec<_>>(), [82.0, 117.0, 182.0, 182.0]);
    }
}
