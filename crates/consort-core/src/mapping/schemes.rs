//! The mappings `iso`, `int` and `spr`, which give programs cores of their own or spread them.

use crate::ids::PuId;
use crate::mapping::max_threads_per_pu;
use crate::topology::Topology;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Cache domains with the numbers of threads of each program in each.
struct DomainLoads {
    domains: Vec<Vec<PuId>>,
    /// Number of threads by program, domain by domain; programs without any are left out.
    threads: Vec<BTreeMap<usize, usize>>,
    /// Threads by domain.
    load: Vec<usize>,
    per_pu: usize,
}

/// `iso`: puts each program as a whole into the emptiest domain with room for it, the largest
/// program first. Only a program that fits nowhere is divided.
pub(super) fn isolated_mapping(topology: &Topology, threads: &[usize]) -> Vec<Vec<PuId>> {
    let mut dealt = DomainLoads::new(topology, threads);
    let mut order: Vec<usize> = (0..threads.len()).collect();
    order.sort_by_key(|&program| Reverse(threads[program]));
    for program in order {
        dealt.isolate(program, threads[program]);
    }
    dealt.seats(topology, threads)
}

/// `int`: deals the threads of each program round the domains.
pub(super) fn interleaved_mapping(topology: &Topology, threads: &[usize]) -> Vec<Vec<PuId>> {
    let mut dealt = DomainLoads::new(topology, threads);
    for (program, &count) in threads.iter().enumerate() {
        (0..count).for_each(|_| dealt.place_in_next(program));
    }
    dealt.seats(topology, threads)
}

impl DomainLoads {
    fn new(topology: &Topology, threads: &[usize]) -> Self {
        let domains = domains(topology);
        Self {
            threads: vec![BTreeMap::new(); domains.len()],
            load: vec![0; domains.len()],
            domains,
            per_pu: max_threads_per_pu(topology, threads),
        }
    }

    fn room(&self, domain: usize) -> usize {
        self.per_pu * self.domains[domain].len() - self.load[domain]
    }

    fn add(&mut self, domain: usize, program: usize, threads: usize) {
        *self.threads[domain].entry(program).or_default() += threads;
        self.load[domain] += threads;
    }

    /// Places all threads of a program: in the emptiest domain with room for the remaining threads,
    /// else in the one with the most room.
    fn isolate(&mut self, program: usize, count: usize) {
        let mut left = count;
        while left > 0 {
            let key = |&d: &usize| (self.room(d) >= left, self.room(d), Reverse(d));
            let Some(domain) = (0..self.domains.len()).max_by_key(key) else {
                return;
            };
            let here = left.min(self.room(domain));
            self.add(domain, program, here);
            left -= here;
        }
    }

    /// Places one thread in the domain with the fewest siblings for its size, among equals in the
    /// emptiest.
    fn place_in_next(&mut self, program: usize) {
        let with_room = (0..self.domains.len()).filter(|&d| self.room(d) > 0);
        let next = with_room.min_by_key(|&d| {
            let size = self.domains[d].len();
            let siblings = self.threads[d].get(&program).copied().unwrap_or(0);
            (fullness(siblings, size), fullness(self.load[d], size), d)
        });
        next.into_iter().for_each(|d| self.add(d, program, 1));
    }

    /// Places the threads of each domain, program after program on neighbouring CPUs.
    fn seats(&self, topology: &Topology, threads: &[usize]) -> Vec<Vec<PuId>> {
        let mut seats: Vec<Vec<PuId>> = vec![Vec::new(); threads.len()];
        for (domain, pus) in self.domains.iter().enumerate() {
            let mut places = deal_evenly(topology, pus, self.load[domain]).into_iter();
            for (&program, &threads) in &self.threads[domain] {
                seats[program].extend(places.by_ref().take(threads));
            }
        }
        seats
    }
}

/// `spr`: places every thread on the core with the fewest siblings, among equals the emptiest, in
/// the cache domain with the fewest siblings; there on the emptiest CPU.
pub(super) fn spread_mapping(topology: &Topology, threads: &[usize]) -> Vec<Vec<PuId>> {
    let mut seats = SpreadSeats::new(topology, max_threads_per_pu(topology, threads));
    let mut programs = Vec::with_capacity(threads.len());
    for &count in threads {
        seats.begin();
        programs.push((0..count).filter_map(|_| seats.next()).collect());
    }
    programs
}

struct SpreadSeats<'a> {
    topology: &'a Topology,
    /// Number of the cache domain by core.
    domain: Vec<usize>,
    size: Vec<usize>,
    per_pu: usize,
    /// Threads by CPU.
    taken: BTreeMap<PuId, usize>,
    /// Threads by core.
    load: Vec<usize>,
    /// Threads of the program that is being placed, by core and by cache domain.
    siblings: [Vec<usize>; 2],
}

impl<'a> SpreadSeats<'a> {
    fn new(topology: &'a Topology, per_pu: usize) -> Self {
        let domains = domains(topology);
        let mut domain = vec![0; topology.cores().len()];
        let mut size = vec![0; domains.len()];
        for (number, pus) in domains.iter().enumerate() {
            let cores: BTreeSet<usize> = pus.iter().filter_map(|&p| topology.core_of(p)).collect();
            size[number] = cores.len();
            cores.into_iter().for_each(|core| domain[core] = number);
        }
        Self {
            topology,
            load: vec![0; domain.len()],
            domain,
            size,
            per_pu,
            taken: topology.pus().iter().map(|pu| (pu, 0)).collect(),
            siblings: [Vec::new(), Vec::new()],
        }
    }

    fn begin(&mut self) {
        self.siblings = [vec![0; self.domain.len()], vec![0; self.size.len()]];
    }

    fn next(&mut self) -> Option<PuId> {
        let free = (0..self.domain.len()).filter(|&core| self.has_room(core));
        let core = free.min_by_key(|&core| self.order(core))?;
        let pus = self.topology.cores()[core].pus.iter().copied();
        let pu = pus.min_by_key(|pu| (self.taken[pu], *pu))?;
        self.load[core] += 1;
        self.siblings[0][core] += 1;
        self.siblings[1][self.domain[core]] += 1;
        *self.taken.entry(pu).or_default() += 1;
        Some(pu)
    }

    fn has_room(&self, core: usize) -> bool {
        self.load[core] < self.per_pu * self.topology.cores()[core].pus.len()
    }

    /// Sort key, smaller is better: siblings, load and siblings in the domain, each by size.
    fn order(&self, core: usize) -> (usize, usize, usize, usize) {
        let (size, domain) = (self.topology.cores()[core].pus.len(), self.domain[core]);
        (
            fullness(self.siblings[0][core], size),
            fullness(self.load[core], size),
            fullness(self.siblings[1][domain], self.size[domain]),
            core,
        )
    }
}

/// Factor that turns load over size into an integer, so that parts of different size compare.
const SCALE: usize = 1 << 20;

/// Load of a part of the machine over its size, in parts of [`SCALE`].
fn fullness(load: usize, size: usize) -> usize {
    load * SCALE / size.max(1)
}

/// The CPU of each of `threads` threads in a part of the machine given core by core. Neighbours
/// stay together and the loads of CPUs differ by at most one. If there are fewer threads than CPUs,
/// every core gets one before any core gets two.
fn deal_evenly(topology: &Topology, pus: &[PuId], threads: usize) -> Vec<PuId> {
    let used = if threads < pus.len() {
        pick_by_way(topology, pus, threads)
    } else {
        pus.to_vec()
    };
    let pu = |thread: usize| used[thread * used.len() / threads];
    (0..threads).map(pu).collect()
}

/// Picks `count` CPUs, first the first CPUs of all cores, then the second; returned core by core.
fn pick_by_way(topology: &Topology, pus: &[PuId], count: usize) -> Vec<PuId> {
    let mut by_way: Vec<PuId> = pus.to_vec();
    by_way.sort_by_key(|&pu| way_in_core(topology, pu));
    let chosen: BTreeSet<PuId> = by_way.into_iter().take(count).collect();
    pus.iter()
        .copied()
        .filter(|pu| chosen.contains(pu))
        .collect()
}

fn way_in_core(topology: &Topology, pu: PuId) -> Option<usize> {
    let core = &topology.cores()[topology.core_of(pu)?];
    core.pus.iter().position(|&other| other == pu)
}

/// Parts of the machine that share a cache, each with its CPUs core by core: LLC domains if there
/// are several, else level 2 domains of several cores, else cores.
pub fn domains(topology: &Topology) -> Vec<Vec<PuId>> {
    let (llcs, l2s) = (topology.llcs(), topology.l2s());
    let caches = if llcs.len() > 1 {
        llcs
    } else if l2s.len() > 1 && l2s.iter().any(|l2| l2.cores.len() > 1) {
        l2s
    } else {
        let cores = topology.cores().iter();
        return cores.map(|core| core.pus.clone()).collect();
    };
    let mut domains = Vec::with_capacity(caches.len());
    for cache in caches {
        let cores = cache.cores.iter().map(|&core| &topology.cores()[core]);
        domains.push(cores.flat_map(|core| core.pus.iter().copied()).collect());
    }
    domains
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::testing::{chip, uneven};
    use crate::mapping::{Mapping, MappingScheme, max_threads_per_pu};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn shown(scheme: MappingScheme, topology: &Topology, threads: &[usize]) -> String {
        Mapping::from_scheme(scheme, topology, threads).to_string()
    }

    /// The table of the source: two programs of four threads on a Q9550.
    #[test]
    fn mappings_match_the_source_on_its_chip() {
        let chip = chip(2, 2, 1);
        assert_eq!(shown(MappingScheme::Iso, &chip, &[4, 4]), "0.0.1.1/2.2.3.3");
        assert_eq!(shown(MappingScheme::Int, &chip, &[4, 4]), "0.0.2.2/1.1.3.3");
        assert_eq!(shown(MappingScheme::Spr, &chip, &[4, 4]), "0.2.1.3/0.2.1.3");
    }

    #[test]
    fn siblings_share_smt_cores_under_iso_and_int() {
        let chip = chip(2, 2, 2);
        assert_eq!(shown(MappingScheme::Iso, &chip, &[4, 4]), "0.1.2.3/4.5.6.7");
        assert_eq!(shown(MappingScheme::Int, &chip, &[4, 4]), "0.1.4.5/2.3.6.7");
        assert_eq!(shown(MappingScheme::Spr, &chip, &[4, 4]), "0.4.2.6/1.5.3.7");
    }

    #[test]
    fn only_too_large_programs_are_divided() {
        let chip = chip(2, 2, 1);
        assert_eq!(shown(MappingScheme::Iso, &chip, &[3, 1]), "0.1.2/3");
        assert_eq!(
            shown(MappingScheme::Iso, &uneven(&[3, 1]), &[1, 3]),
            "3/0.1.2"
        );
    }

    fn chips() -> impl Strategy<Value = Topology> {
        prop_oneof![
            (1u32..4, 1u32..4, 1u32..4).prop_map(|(d, c, w)| chip(d, c, w)),
            prop::collection::vec(1u32..5, 1..4).prop_map(|cores| uneven(&cores)),
        ]
    }

    /// Chip with like domains, and at most as many programs as domains, each with at most the
    /// threads that a domain has room for.
    fn programs_with_a_domain_each() -> impl Strategy<Value = (Topology, Vec<usize>)> {
        (1u32..5, 1u32..4, 1u32..3)
            .prop_flat_map(|(d, c, w)| {
                let threads = prop::collection::vec(1usize..9, 1..=d as usize);
                (Just(chip(d, c, w)), threads)
            })
            .prop_map(|(chip, mut threads)| {
                let room = |threads: &[usize]| {
                    max_threads_per_pu(&chip, threads) * domains(&chip)[0].len()
                };
                while threads.iter().any(|&n| n > room(&threads)) {
                    let most = room(&threads);
                    threads.iter_mut().for_each(|n| *n = (*n).min(most));
                }
                (chip, threads)
            })
    }

    proptest! {
        #[test]
        fn each_thread_has_a_place_within_shares(
            chip in chips(),
            threads in prop::collection::vec(0usize..9, 0..5),
        ) {
            for scheme in MappingScheme::ALL {
                let mapping = Mapping::from_scheme(scheme, &chip, &threads);
                let placed: Vec<usize> = mapping.programs().iter().map(Vec::len).collect();
                prop_assert_eq!(&placed, &threads);
                let loads = mapping.loads();
                prop_assert!(loads.keys().all(|&pu| chip.pus().contains(pu)));
                let most = loads.values().copied().max().unwrap_or(0);
                prop_assert!(most <= max_threads_per_pu(&chip, &threads), "{scheme} {mapping}");
            }
        }

        #[test]
        fn iso_divides_no_program_that_fits(
            (chip, threads) in programs_with_a_domain_each(),
        ) {
            let domains = domains(&chip);
            let mapping = Mapping::from_scheme(MappingScheme::Iso, &chip, &threads);
            for pus in mapping.programs() {
                let home = domains.iter().find(|d| d.contains(&pus[0])).unwrap();
                prop_assert!(pus.iter().all(|pu| home.contains(pu)), "{mapping}");
            }
        }

        #[test]
        fn int_deals_each_program_evenly_to_domains(
            chip in (1u32..5, 1u32..4, 1u32..3).prop_map(|(d, c, w)| chip(d, c, w)),
            threads in prop::collection::vec(1usize..9, 1..5),
        ) {
            let mapping = Mapping::from_scheme(MappingScheme::Int, &chip, &threads);
            for pus in mapping.programs() {
                let domains = domains(&chip);
                let here = domains.iter().map(|d| pus.iter().filter(|pu| d.contains(pu)).count());
                let here: Vec<usize> = here.collect();
                let apart = here.iter().max().unwrap() - here.iter().min().unwrap();
                prop_assert!(apart <= 1, "{mapping}");
            }
        }

        #[test]
        fn spr_spreads_siblings_evenly_over_cores(
            chip in (1u32..5, 1u32..4, 1u32..3).prop_map(|(d, c, w)| chip(d, c, w)),
            threads in prop::collection::vec(1usize..9, 1..5),
        ) {
            let mapping = Mapping::from_scheme(MappingScheme::Spr, &chip, &threads);
            for pus in mapping.programs() {
                let on = |core: usize| pus.iter().filter(|&&pu| chip.core_of(pu) == Some(core)).count();
                let here: BTreeSet<usize> = (0..chip.cores().len()).map(on).collect();
                prop_assert!(here.last().unwrap() - here.first().unwrap() <= 1, "{mapping}");
            }
        }
    }

    #[test]
    fn threads_are_dealt_evenly_over_cores() {
        let topology = chip(1, 2, 2);
        let pus: Vec<PuId> = topology.pus().iter().collect();
        let of = |threads| -> Vec<u32> {
            let given = deal_evenly(&topology, &pus, threads);
            given.into_iter().map(|pu| pu.0).collect()
        };
        assert_eq!(of(2), [0, 2]);
        assert_eq!(of(3), [0, 1, 2]);
        assert_eq!(of(6), [0, 0, 1, 2, 2, 3]);
        assert_eq!(of(0), [0; 0]);
    }

    fn shown_domains(topology: &Topology) -> String {
        let domains = domains(topology);
        let one = |pus: &Vec<PuId>| pus.iter().map(|pu| pu.0.to_string()).collect::<Vec<_>>();
        let all: Vec<String> = domains.iter().map(|pus| one(pus).join(",")).collect();
        all.join(" ")
    }

    #[test]
    fn largest_cache_with_several_domains_counts() {
        assert_eq!(shown_domains(&chip(2, 2, 1)), "0,1 2,3");
        assert_eq!(shown_domains(&chip(2, 2, 2)), "0,1,2,3 4,5,6,7");
        // One LLC: programs can only be isolated by core.
        assert_eq!(
            shown_domains(&Topology::uniform(3, 2).unwrap()),
            "0,3 1,4 2,5"
        );
    }
}
