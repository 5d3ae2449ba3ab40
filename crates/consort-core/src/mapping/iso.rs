//! `iso` and `int`: programs on cores of their own, in one cache domain or over all of them.

use super::deal::{deal_evenly, fullness};
use super::{domains, max_threads_per_pu};
use crate::ids::PuId;
use crate::topology::Topology;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Cache domains with the numbers of threads of each program in each.
struct DomainLoads {
    domains: Vec<Vec<PuId>>,
    /// Number of threads by program, domain by domain; programs without any are left out.
    threads: Vec<BTreeMap<usize, usize>>,
    /// Threads by domain.
    load: Vec<usize>,
    /// Threads that a PU has at most.
    per_pu: usize,
}

/// `iso`: a program goes whole to the emptiest domain that has room for it, the largest program
/// first; only one that fits nowhere is divided.
pub(super) fn isolated_mapping(topology: &Topology, threads: &[usize]) -> Vec<Vec<PuId>> {
    let mut dealt = DomainLoads::new(topology, threads);
    let mut order: Vec<usize> = (0..threads.len()).collect();
    order.sort_by_key(|&program| Reverse(threads[program]));
    for program in order {
        dealt.isolate(program, threads[program]);
    }
    dealt.seats(topology, threads)
}

/// `int`: the threads of each program go round the domains.
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

    /// Places the threads of a program until none is left: in the emptiest domain with room for all
    /// that are left, else in the one with the most room.
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

    /// Places one thread in the domain with the fewest of its siblings for its size, among equals
    /// in the emptiest.
    fn place_in_next(&mut self, program: usize) {
        let with_room = (0..self.domains.len()).filter(|&d| self.room(d) > 0);
        let next = with_room.min_by_key(|&d| {
            let size = self.domains[d].len();
            let siblings = self.threads[d].get(&program).copied().unwrap_or(0);
            (fullness(siblings, size), fullness(self.load[d], size), d)
        });
        next.into_iter().for_each(|d| self.add(d, program, 1));
    }

    /// Seats the threads in each domain, program after program on neighbouring PUs.
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

#[cfg(test)]
mod tests {
    use super::super::testing::{chip, uneven};
    use super::super::{Mapping, MappingScheme, domains, max_threads_per_pu};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn shown(scheme: MappingScheme, topology: &crate::Topology, threads: &[usize]) -> String {
        Mapping::from_scheme(scheme, topology, threads).to_string()
    }

    /// The table of the source: two programs of four threads on a Q9550.
    #[test]
    fn on_the_sources_chip_the_mappings_are_the_sources() {
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
    fn a_program_too_large_for_a_domain_is_divided_and_the_others_are_not() {
        let chip = chip(2, 2, 1);
        assert_eq!(shown(MappingScheme::Iso, &chip, &[3, 1]), "0.1.2/3");
        assert_eq!(
            shown(MappingScheme::Iso, &uneven(&[3, 1]), &[1, 3]),
            "3/0.1.2"
        );
    }

    fn chips() -> impl Strategy<Value = crate::Topology> {
        prop_oneof![
            (1u32..4, 1u32..4, 1u32..4).prop_map(|(d, c, w)| chip(d, c, w)),
            prop::collection::vec(1u32..5, 1..4).prop_map(|cores| uneven(&cores)),
        ]
    }

    /// Chip with like domains, and at most as many programs as domains, each with at most the
    /// threads that a domain has room for.
    fn programs_with_a_domain_each() -> impl Strategy<Value = (crate::Topology, Vec<usize>)> {
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
        fn every_thread_has_one_place_and_no_pu_more_than_its_share(
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
        fn iso_divides_no_program_where_each_can_have_a_domain(
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
        fn int_gives_each_like_domain_the_same_of_every_program(
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
        fn spr_lets_no_core_have_two_siblings_more_than_another(
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
}
