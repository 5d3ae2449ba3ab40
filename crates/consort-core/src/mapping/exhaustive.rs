//! Every mapping that the topology distinguishes.
//!
//! Threads of a program are alike, and so are the CPUs of a core, the cores of a cache domain and
//! the domains of the machine, as long as they have the same shape; programs differ. Of the
//! mappings that turn into each other by exchanging equal parts, one is listed.

use crate::ids::PuId;
use crate::mapping::{Mapping, max_threads_per_pu};
use crate::topology::Topology;
use std::collections::BTreeMap;
use thiserror::Error;

/// Most fillings of one part of the machine, so that memory is bounded; all mappings together have
/// their own bound.
const PARTIAL: usize = 1_000_000;

/// All mappings of a machine, up to its symmetries.
#[derive(Clone, Debug)]
pub struct ExhaustiveMappings {
    tree: MachineTree,
    shapes: SymmetryTree,
    /// Fillings, ascending.
    fillings: Vec<ThreadFilling>,
    programs: usize,
}

/// There are more mappings than the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "there are more than {bound} mappings up to symmetry; raise the bound or take fewer threads"
)]
pub struct TooManyMappings {
    /// The bound, of all mappings or of one part of the machine.
    pub bound: usize,
}

/// Number of threads of each program on each CPU, CPU by CPU in the tree's order.
type ThreadFilling = Vec<usize>;

/// Parts with the number of equal ones; a [`MachineTree`] without its CPUs.
#[derive(Clone, Debug)]
enum SymmetryTree {
    Pu,
    Runs(Vec<(Self, usize)>),
}

impl ExhaustiveMappings {
    /// Lists the mappings of programs with these numbers of threads in which no CPU has more than
    /// its share, threads by CPUs rounded up.
    ///
    /// # Errors
    /// If there are more than `bound` mappings.
    pub fn new(
        topology: &Topology,
        threads: &[usize],
        bound: usize,
    ) -> Result<Self, TooManyMappings> {
        let tree = MachineTree::from_topology(topology);
        let shapes = SymmetryTree::from_tree(&tree, topology);
        let fill = FillingEnumerator {
            threads,
            per_pu: max_threads_per_pu(topology, threads),
        };
        let all = |filling: &ThreadFilling| fill.totals(filling) == threads;
        let mut fillings = fill.part_fillings(&shapes)?;
        fillings.retain(all);
        if fillings.len() > bound {
            return Err(TooManyMappings { bound });
        }
        Ok(Self {
            tree,
            shapes,
            fillings,
            programs: threads.len(),
        })
    }

    /// Number of mappings.
    pub fn count(&self) -> usize {
        self.fillings.len()
    }

    /// One mapping of each symmetry class, in a fixed order.
    pub fn mappings(&self) -> impl Iterator<Item = Mapping> + '_ {
        let pus = self.tree.pus();
        self.fillings
            .iter()
            .map(move |filling| self.mapping(&pus, filling))
    }

    /// Index of the mapping that equals `mapping` up to symmetry.
    pub fn position(&self, mapping: &Mapping) -> Option<usize> {
        if mapping.programs().len() != self.programs {
            return None;
        }
        let mut filling = ThreadFilling::new();
        for pu in self.tree.pus() {
            for program in mapping.programs() {
                filling.push(program.iter().filter(|on| **on == pu).count());
            }
        }
        let filling = self.shapes.canonical_filling(&filling, self.programs);
        self.fillings.binary_search(&filling).ok()
    }

    fn mapping(&self, pus: &[PuId], filling: &[usize]) -> Mapping {
        let mut programs = Vec::with_capacity(self.programs);
        for program in 0..self.programs {
            let threads = filling.iter().skip(program).step_by(self.programs);
            let mut placed = Vec::new();
            for (&threads, &pu) in threads.zip(pus) {
                placed.extend(std::iter::repeat_n(pu, threads));
            }
            programs.push(placed);
        }
        Mapping { programs }
    }
}

impl SymmetryTree {
    fn from_tree(tree: &MachineTree, topology: &Topology) -> Self {
        let MachineTree::Parts(parts) = tree else {
            return Self::Pu;
        };
        let alike = |a: &MachineTree, b: &MachineTree| a.shape(topology) == b.shape(topology);
        let runs = parts.chunk_by(alike);
        Self::Runs(
            runs.map(|run| (Self::from_tree(&run[0], topology), run.len()))
                .collect(),
        )
    }

    fn pu_count(&self) -> usize {
        match self {
            Self::Pu => 1,
            Self::Runs(runs) => runs
                .iter()
                .map(|(part, count)| part.pu_count() * count)
                .sum(),
        }
    }

    /// Sorts a filling so that equal parts are in ascending order.
    fn canonical_filling(&self, filling: &[usize], programs: usize) -> ThreadFilling {
        let Self::Runs(runs) = self else {
            return filling.to_vec();
        };
        let mut rest = filling;
        let mut sorted = Vec::with_capacity(filling.len());
        for (part, count) in runs {
            let size = part.pu_count() * programs;
            let (run, after) = rest.split_at((size * count).min(rest.len()));
            let parts = run.chunks(size.max(1));
            let mut parts: Vec<ThreadFilling> =
                parts.map(|f| part.canonical_filling(f, programs)).collect();
            parts.sort_unstable();
            sorted.extend(parts.into_iter().flatten());
            rest = after;
        }
        sorted
    }
}

/// Threads to place, and the most per CPU.
struct FillingEnumerator<'a> {
    threads: &'a [usize],
    per_pu: usize,
}

impl FillingEnumerator<'_> {
    fn totals(&self, filling: &[usize]) -> Vec<usize> {
        let programs = self.threads.len();
        (0..programs)
            .map(|program| filling.iter().skip(program).step_by(programs).sum())
            .collect()
    }

    /// Fillings of a part, ascending, in which no program has more threads than exist.
    fn part_fillings(&self, parts: &SymmetryTree) -> Result<Vec<ThreadFilling>, TooManyMappings> {
        let SymmetryTree::Runs(runs) = parts else {
            return Ok(self.pu_fillings());
        };
        let mut ways: Vec<ThreadFilling> = vec![Vec::new()];
        for (part, count) in runs {
            let one = self.part_fillings(part)?;
            let run = self.repeat_fillings(&one, *count)?;
            ways = self.join_fillings(&ways, &run)?;
        }
        ways.sort_unstable();
        Ok(ways)
    }

    /// Threads of each program on one CPU, at most its share together.
    fn pu_fillings(&self) -> Vec<ThreadFilling> {
        let mut ways: Vec<ThreadFilling> = vec![Vec::new()];
        for &threads in self.threads {
            let longer = |way: &ThreadFilling| {
                let left = self.per_pu - way.iter().sum::<usize>();
                let with = |more: usize| [&way[..], &[more]].concat();
                (0..=left.min(threads)).map(with).collect::<Vec<_>>()
            };
            ways = ways.iter().flat_map(longer).collect();
        }
        ways
    }

    /// Fillings of several equal parts, in ascending order because equal parts can be exchanged.
    fn repeat_fillings(
        &self,
        one: &[ThreadFilling],
        count: usize,
    ) -> Result<Vec<ThreadFilling>, TooManyMappings> {
        let mut runs: Vec<(usize, ThreadFilling)> = vec![(0, Vec::new())];
        for _ in 0..count {
            let mut longer = Vec::new();
            for (from, run) in &runs {
                for (number, way) in one.iter().enumerate().skip(*from) {
                    self.push(&mut longer, (number, [&run[..], &way[..]].concat()), |l| {
                        &l.1
                    })?;
                }
            }
            runs = longer;
        }
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }

    fn join_fillings(
        &self,
        left: &[ThreadFilling],
        right: &[ThreadFilling],
    ) -> Result<Vec<ThreadFilling>, TooManyMappings> {
        let mut both = Vec::new();
        for (l, r) in left.iter().flat_map(|l| right.iter().map(move |r| (l, r))) {
            self.push(&mut both, [&l[..], &r[..]].concat(), |way| way)?;
        }
        Ok(both)
    }

    /// Adds a filling if no program has too many threads in it.
    fn push<T>(
        &self,
        ways: &mut Vec<T>,
        way: T,
        filling: impl Fn(&T) -> &ThreadFilling,
    ) -> Result<(), TooManyMappings> {
        let totals = self.totals(filling(&way));
        if totals
            .iter()
            .zip(self.threads)
            .all(|(total, threads)| total <= threads)
        {
            ways.push(way);
        }
        if ways.len() > PARTIAL {
            return Err(TooManyMappings { bound: PARTIAL });
        }
        Ok(())
    }
}

/// The machine as a tree of parts that share something, so that parts of the same shape can be
/// exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MachineTree {
    /// A CPU.
    Pu(PuId),
    /// Parts, sorted so that parts of the same shape are neighbours.
    Parts(Vec<MachineTree>),
}

/// Shape of a part; two parts of the same shape can be exchanged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PartShape {
    /// A CPU of a core type.
    Pu(usize),
    /// The shapes of the parts, in order.
    Parts(Vec<PartShape>),
}

impl MachineTree {
    /// Builds the tree of a machine: packages of nodes of LLC domains of level 2 domains of cores
    /// of CPUs.
    fn from_topology(topology: &Topology) -> Self {
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
            // Below the core each CPU is a part of its own.
            let key = path.first().map_or(at, |&key| key);
            let rest = path.get(1..).unwrap_or_default().to_vec();
            groups.entry(key).or_default().push((rest, pu));
        }
        let parts = groups
            .into_values()
            .map(|group| Self::nest_parts(group, topology));
        Self::join_parts(parts.collect(), topology)
    }

    /// Joins parts. A single part stands for the whole, so that levels without a choice vanish.
    fn join_parts(mut parts: Vec<Self>, topology: &Topology) -> Self {
        if parts.len() == 1
            && let Some(only) = parts.pop()
        {
            return only;
        }
        parts.sort_by_cached_key(|part| part.shape(topology));
        Self::Parts(parts)
    }

    fn pus(&self) -> Vec<PuId> {
        match self {
            Self::Pu(pu) => vec![*pu],
            Self::Parts(parts) => parts.iter().flat_map(Self::pus).collect(),
        }
    }

    fn shape(&self, topology: &Topology) -> PartShape {
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

/// Path to a CPU, from the largest part down to its core.
fn path(topology: &Topology, pu: PuId) -> Option<Vec<usize>> {
    let number = topology.core_of(pu)?;
    let core = topology.cores().get(number)?;
    let l2 = topology.l2s().iter().position(|d| d.pus.contains(pu));
    let l2 = l2.unwrap_or(usize::MAX);
    Some(vec![core.package, core.node, core.llc, l2, number])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::testing::{chip, uneven};
    use crate::mapping::{MappingScheme, max_threads_per_pu};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Exchanges of CPUs after which the same CPUs share cores and LLC domains, found by trying
    /// all.
    fn symmetries(topology: &Topology) -> Vec<Vec<usize>> {
        let facts = topology.facts();
        let keeps = |order: &[usize]| {
            let pairs = (0..facts.len()).flat_map(|a| (0..facts.len()).map(move |b| (a, b)));
            pairs.into_iter().all(|(a, b)| {
                let (c, d) = (order[a], order[b]);
                (facts[a].core == facts[b].core) == (facts[c].core == facts[d].core)
                    && (facts[a].llc == facts[b].llc) == (facts[c].llc == facts[d].llc)
            })
        };
        let mut all = orders(facts.len());
        all.retain(|order| keeps(order));
        all
    }

    fn orders(n: usize) -> Vec<Vec<usize>> {
        if n == 0 {
            return vec![Vec::new()];
        }
        let insert = |order: Vec<usize>| {
            (0..n).map(move |at| {
                let mut longer = order.clone();
                longer.insert(at, n - 1);
                longer
            })
        };
        orders(n - 1).into_iter().flat_map(insert).collect()
    }

    /// Every assignment of every thread, counted up to exchanges that were found by trial.
    fn counted_naively(topology: &Topology, threads: &[usize]) -> usize {
        let pus = topology.pus().len();
        let owner: Vec<usize> = threads
            .iter()
            .enumerate()
            .flat_map(|(p, &n)| vec![p; n])
            .collect();
        let (symmetries, share) = (symmetries(topology), max_threads_per_pu(topology, threads));
        let mut kinds = BTreeSet::new();
        for number in 0..pus.pow(owner.len() as u32) {
            let mut content = vec![vec![0; threads.len()]; pus];
            let mut digits = number;
            for &program in &owner {
                content[digits % pus][program] += 1;
                digits /= pus;
            }
            if content.iter().all(|c| c.iter().sum::<usize>() <= share) {
                let same = symmetries
                    .iter()
                    .map(|s| s.iter().map(|&at| content[at].clone()).collect());
                let least: Option<Vec<Vec<usize>>> = same.min();
                kinds.insert(least);
            }
        }
        kinds.len()
    }

    fn count(topology: &Topology, threads: &[usize]) -> usize {
        ExhaustiveMappings::new(topology, threads, 10_000)
            .unwrap()
            .count()
    }

    /// By hand: two domains of two CPUs of two threads each, four a and four b. A domain can hold 2
    /// a + 2 b as aa|bb or ab|ab, 3 a + 1 b only as aa|ab, 4 a as aa|aa. So two domains of 2+2 make
    /// 3 pairs, 3+1 with 1+3 one, 4+0 with 0+4 one.
    #[test]
    fn pair_of_the_source_has_five_mappings() {
        let chip = chip(2, 2, 1);
        let all = ExhaustiveMappings::new(&chip, &[4, 4], 100).unwrap();
        assert_eq!(all.count(), 5);
        let named = MappingScheme::ALL.map(|s| {
            all.position(&Mapping::from_scheme(s, &chip, &[4, 4]))
                .unwrap()
        });
        assert_eq!(BTreeSet::from(named).len(), 3);
    }

    #[test]
    fn bound_is_enforced() {
        let error = ExhaustiveMappings::new(&chip(2, 2, 1), &[4, 4], 4).unwrap_err();
        assert_eq!(error, TooManyMappings { bound: 4 });
    }

    #[test]
    fn the_machine_without_threads_has_one_mapping() {
        assert_eq!(count(&chip(2, 2, 2), &[]), 1);
        assert_eq!(count(&chip(2, 2, 2), &[0, 0]), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn count_matches_naive_search(
            chip in prop_oneof![
                Just(chip(1, 3, 1)), Just(chip(2, 2, 1)), Just(chip(1, 2, 2)), Just(chip(2, 1, 2)),
                Just(uneven(&[2, 1])), Just(uneven(&[1, 2, 1])),
            ],
            threads in prop::collection::vec(1usize..4, 1..4),
        ) {
            prop_assume!(threads.iter().sum::<usize>() <= 6);
            prop_assert_eq!(count(&chip, &threads), counted_naively(&chip, &threads));
        }

        #[test]
        fn each_mapping_is_found_again(
            chip in (1u32..3, 1u32..3, 1u32..3).prop_map(|(d, c, w)| chip(d, c, w)),
            threads in prop::collection::vec(1usize..4, 1..3),
        ) {
            let all = ExhaustiveMappings::new(&chip, &threads, 100_000).unwrap();
            for (number, mapping) in all.mappings().enumerate() {
                prop_assert_eq!(all.position(&mapping), Some(number));
                let placed: Vec<usize> = mapping.programs().iter().map(Vec::len).collect();
                prop_assert_eq!(&placed, &threads);
            }
            for scheme in MappingScheme::ALL {
                prop_assert!(all.position(&Mapping::from_scheme(scheme, &chip, &threads)).is_some());
            }
        }
    }
}
