//! Choice of the programs that share a core: every pair, or a seeded draw of larger groups.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// Groups of `ways` programs, by number, out of `programs`. All pairs, those of a program with
/// itself included; of larger groups `draws`, each program drawn independently.
pub(super) fn groups(programs: usize, ways: u32, draws: usize, seed: u64) -> Vec<Vec<usize>> {
    if ways == 2 {
        let pairs = (0..programs).flat_map(|a| (a..programs).map(move |b| vec![a, b]));
        return pairs.collect();
    }
    // The number of threads takes part, so that levels are drawn independently.
    let mut rng = Pcg64::seed_from_u64(seed ^ (u64::from(ways) << 32));
    let mut group = || (0..ways).map(|_| rng.random_range(0..programs)).collect();
    (0..draws).map(|_| group()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_complete_and_larger_groups_drawn() {
        let pairs = groups(3, 2, 1, 7);
        assert_eq!(pairs, [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2], [2, 2]]);
        let drawn = groups(5, 4, 100, 7);
        assert_eq!(drawn, groups(5, 4, 100, 7));
        assert_ne!(drawn, groups(5, 4, 100, 8));
        assert_eq!(drawn.len(), 100);
        let every = |p| drawn.iter().flatten().any(|&q| q == p);
        assert!((0..5).all(every) && drawn.iter().all(|group| group.len() == 4));
    }
}
