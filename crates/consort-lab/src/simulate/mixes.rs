//! Drawn workloads: programs of one thread, and pairs of programs of several threads.

use super::programs::{instance, join_entries};
use consort_sim::program::ProgramSpec;
use consort_sim::workload::Workload;
use rand::SeedableRng;
use rand::seq::index;
use rand_pcg::Pcg64;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Streams of workloads are this far apart.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// Draws different ones of `members`, in random order; the draw of a number depends on the seed
/// alone, not on other draws.
fn draw_members(seed: u64, members: usize, size: usize, number: usize) -> Vec<usize> {
    let stream = STRIDE.wrapping_mul((size * 1000 + number) as u64);
    let mut random = Pcg64::seed_from_u64(seed ^ stream);
    index::sample(&mut random, members, size.min(members)).into_vec()
}

/// Draws different sets of `size` of so many members; fewer sets if there are not enough.
pub(crate) fn draw_sets(seed: u64, members: usize, size: usize, count: usize) -> Vec<Vec<usize>> {
    let mut known = BTreeSet::new();
    // Known draws are skipped; after this many even a small number of sets has come up.
    let numbers = 0..20 * count;
    let fresh = numbers.map(|number| draw_members(seed, members, size, number));
    let is_new = |drawn: &Vec<usize>| known.insert(drawn.iter().copied().collect::<BTreeSet<_>>());
    fresh.filter(is_new).take(count).collect()
}

/// Drawn workloads of `size` different programs of a suite, each with so many threads.
pub(crate) fn draw_mixes(
    seed: u64,
    suite: &[Arc<ProgramSpec>],
    (size, threads): (usize, u32),
    count: usize,
) -> Vec<Workload> {
    let mix = |drawn: Vec<usize>| {
        let chosen = drawn.into_iter().map(|p| &suite[p]);
        join_entries(
            chosen
                .map(|p| instance(p.name.clone(), p, threads))
                .collect(),
        )
    };
    let drawn = draw_sets(seed, suite.len(), size, count);
    drawn.into_iter().map(mix).collect()
}

#[cfg(test)]
mod tests {
    use super::super::programs::suite;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn draws_follow_their_seed_without_repeats(
            seed: u64, members in 2usize..30, size in 1usize..5,
        ) {
            let all = draw_sets(seed, members, size, 12);
            prop_assert_eq!(&all[..1], &draw_sets(seed, members, size, 1)[..]);
            let different: BTreeSet<_> = all.iter().collect();
            prop_assert_eq!(different.len(), all.len());
            for one in &all {
                prop_assert_eq!(one.len(), size.min(members));
                let set: BTreeSet<_> = one.iter().collect();
                prop_assert_eq!(set.len(), one.len());
                prop_assert!(one.iter().all(|&p| p < members));
            }
        }
    }

    #[test]
    fn hundred_pairs_differ_and_use_every_program() {
        let suite = suite("spec2006", usize::MAX).unwrap();
        let pairs = draw_mixes(15, &suite, (2, 1), 100);
        let texts: BTreeSet<&str> = pairs.iter().map(|w| w.text.as_str()).collect();
        assert_eq!(texts.len(), 100);
        let used = pairs.iter().flat_map(|w| &w.entries);
        let used: BTreeSet<&str> = used.map(|e| e.name.as_str()).collect();
        assert_eq!(used.len(), 29);
    }

    #[test]
    fn drawn_programs_have_the_requested_threads() {
        let suite = suite("splash2", usize::MAX).unwrap();
        let pairs = draw_mixes(1, &suite, (2, 4), 3);
        assert!(
            pairs
                .iter()
                .flat_map(|w| &w.entries)
                .all(|e| e.threads == 4)
        );
    }
}
