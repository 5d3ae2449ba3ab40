//! Dealing programs to parts of the machine.

use std::cmp::Reverse;

/// Way in which programs are divided among parts of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProgramDivision {
    /// Each whole in one part, as far as it fits.
    Together,
    /// Each over all parts.
    Spread,
    /// Each whole in one part, so that the parts' demands are alike.
    Balanced,
}

/// A program to deal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProgramDemand {
    /// Number of its threads.
    pub(super) threads: usize,
    /// Demand of each thread on what the part shares.
    pub(super) demand: f64,
}

/// Threads of each program in each part, by part and program; `sizes` are the PUs of the parts,
/// which get threads in proportion, and `caches` the capacities of their caches relative to the
/// largest, by which demands are balanced.
pub(super) fn divide_programs(
    way: ProgramDivision,
    hands: &[ProgramDemand],
    sizes: &[usize],
    caches: &[f64],
) -> Vec<Vec<usize>> {
    let mut table = DivisionTable::new(hands, sizes, caches);
    match way {
        ProgramDivision::Together => {
            table.assign_largest_first(|h| h.threads as f64, DivisionTable::most_room)
        }
        ProgramDivision::Balanced => {
            table.assign_largest_first(|h| h.demand * h.threads as f64, DivisionTable::least_demand)
        }
        ProgramDivision::Spread => table.spread_threads(),
    }
    table.dealt
}

struct DivisionTable<'a> {
    hands: &'a [ProgramDemand],
    sizes: &'a [usize],
    caches: &'a [f64],
    /// Threads that each part may still get.
    room: Vec<usize>,
    /// Threads dealt so far, by part and program.
    dealt: Vec<Vec<usize>>,
}

impl<'a> DivisionTable<'a> {
    fn new(hands: &'a [ProgramDemand], sizes: &'a [usize], caches: &'a [f64]) -> Self {
        let all: usize = hands.iter().map(|h| h.threads).sum();
        Self {
            hands,
            sizes,
            caches,
            room: shares(all, sizes),
            dealt: vec![vec![0; hands.len()]; sizes.len()],
        }
    }

    /// Deals the largest program first to the part that `choose` gives; threads that do not fit go
    /// on to the next.
    fn assign_largest_first(
        &mut self,
        size: impl Fn(&ProgramDemand) -> f64,
        choose: impl Fn(&Self, usize) -> Option<usize>,
    ) {
        let mut order: Vec<usize> = (0..self.hands.len()).collect();
        order.sort_by(|&a, &b| size(&self.hands[b]).total_cmp(&size(&self.hands[a])));
        for program in order {
            let mut left = self.hands[program].threads;
            while left > 0 {
                let Some(part) = choose(self, left).filter(|&part| self.room[part] > 0) else {
                    return;
                };
                let here = left.min(self.room[part]);
                self.assign_threads(program, part, here);
                left -= here;
            }
        }
    }

    fn assign_threads(&mut self, program: usize, part: usize, threads: usize) {
        self.dealt[part][program] += threads;
        self.room[part] -= threads;
    }

    fn most_room(&self, _: usize) -> Option<usize> {
        (0..self.sizes.len()).max_by_key(|&part| (self.room[part], Reverse(part)))
    }

    /// Returns, among the parts with room for so many threads, else those with any, the one with
    /// the least demand for its size.
    fn least_demand(&self, threads: usize) -> Option<usize> {
        let fits = |&part: &usize| self.room[part] >= threads;
        let any = |&part: &usize| self.room[part] > 0;
        let parts = || 0..self.sizes.len();
        // Of parts that are as much in demand, such as empty ones, the one with the largest cache.
        let least = |a: &usize, b: &usize| {
            let by_demand = self.demand(*a).total_cmp(&self.demand(*b));
            by_demand.then(self.caches[*b].total_cmp(&self.caches[*a]))
        };
        let whole = parts().filter(fits).min_by(least);
        whole.or_else(|| parts().filter(any).min_by(least))
    }

    fn demand(&self, part: usize) -> f64 {
        let pairs = self.hands.iter().zip(&self.dealt[part]);
        let asked: f64 = pairs.map(|(h, &n)| h.demand * n as f64).sum();
        asked / (self.sizes[part].max(1) as f64 * self.caches[part])
    }

    /// Deals thread by thread to the part with the fewest siblings for its size.
    fn spread_threads(&mut self) {
        for program in 0..self.hands.len() {
            for _ in 0..self.hands[program].threads {
                let parts = (0..self.sizes.len()).filter(|&part| self.room[part] > 0);
                let next = parts.min_by_key(|&part| {
                    let siblings = self.dealt[part][program] << 16;
                    (siblings / self.sizes[part].max(1), Reverse(self.room[part]))
                });
                let Some(part) = next else { return };
                self.assign_threads(program, part, 1);
            }
        }
    }
}

/// Divides so many threads in proportion to sizes, by largest remainder.
fn shares(all: usize, sizes: &[usize]) -> Vec<usize> {
    let total: usize = sizes.iter().sum::<usize>().max(1);
    let mut shares: Vec<usize> = sizes.iter().map(|size| all * size / total).collect();
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&part| Reverse(all * sizes[part] % total));
    let rest = all - shares.iter().sum::<usize>();
    for &part in order.iter().take(rest) {
        shares[part] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hands(of: &[(usize, f64)]) -> Vec<ProgramDemand> {
        let hand = |&(threads, demand): &(usize, f64)| ProgramDemand { threads, demand };
        of.iter().map(hand).collect()
    }

    #[test]
    fn programs_stay_together_are_spread_or_balanced() {
        let two = hands(&[(4, 1.0), (4, 1.0)]);
        assert_eq!(
            divide_programs(ProgramDivision::Together, &two, &[2, 2], &[1.0; 2]),
            [[4, 0], [0, 4]]
        );
        assert_eq!(
            divide_programs(ProgramDivision::Spread, &two, &[2, 2], &[1.0; 2]),
            [[2, 2], [2, 2]]
        );
        // Two heavy and two light ones: a heavy one beside a light one.
        let four = hands(&[(1, 9.0), (1, 8.0), (1, 1.0), (1, 2.0)]);
        let dealt = divide_programs(ProgramDivision::Balanced, &four, &[2, 2], &[1.0; 2]);
        assert_eq!(dealt, [[1, 0, 1, 0], [0, 1, 0, 1]]);
    }

    #[test]
    fn heaviest_program_gets_the_largest_cache() {
        let two = hands(&[(2, 1.0), (2, 9.0)]);
        let dealt =
            |caches: &[f64]| divide_programs(ProgramDivision::Balanced, &two, &[2, 2], caches);
        assert_eq!(dealt(&[1.0, 1.0]), [[0, 2], [2, 0]]);
        assert_eq!(dealt(&[0.25, 1.0]), [[2, 0], [0, 2]]);
    }

    proptest! {
        #[test]
        fn every_thread_is_dealt_and_no_part_gets_more_than_its_share(
            of in prop::collection::vec((0usize..9, 0.0f64..5.0), 0..6),
            sizes in prop::collection::vec(1usize..9, 1..5),
        ) {
            let hands = hands(&of);
            let all: usize = of.iter().map(|h| h.0).sum();
            for way in [ProgramDivision::Together, ProgramDivision::Spread, ProgramDivision::Balanced] {
                let dealt = divide_programs(way, &hands, &sizes, &vec![1.0; sizes.len()]);
                for (program, hand) in hands.iter().enumerate() {
                    let sum: usize = dealt.iter().map(|part| part[program]).sum();
                    prop_assert_eq!(sum, hand.threads);
                }
                let total: usize = sizes.iter().sum();
                for (part, size) in dealt.iter().zip(&sizes) {
                    let load: usize = part.iter().sum();
                    prop_assert!(load <= (all * size).div_ceil(total));
                }
            }
        }
    }
}
