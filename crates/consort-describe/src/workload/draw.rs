//! The seeded draw of `mix:SUITE/COUNT?seed=SEED`.

use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// Draws `count` of `members`: without replacement until every one has been
/// drawn, then with. A longer draw with the same seed begins with the shorter.
pub(super) fn draw<T: Clone>(members: &[T], count: usize, seed: u64) -> Vec<T> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut drawn = members.to_vec();
    drawn.shuffle(&mut rng);
    drawn.truncate(count);
    while drawn.len() < count {
        match draw_one(members, &mut rng) {
            Some(member) => drawn.push(member),
            None => break,
        }
    }
    drawn
}

fn draw_one<T: Clone>(members: &[T], rng: &mut impl Rng) -> Option<T> {
    members.choose(rng).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_is_drawn_once_before_any_is_drawn_twice(
            members in 1usize..40,
            count in 1usize..80,
            seed: u64,
        ) {
            let all: Vec<usize> = (0..members).collect();
            let drawn = draw(&all, count, seed);
            prop_assert_eq!(drawn.len(), count);
            let mut first: Vec<usize> = drawn[..count.min(members)].to_vec();
            first.sort_unstable();
            first.dedup();
            prop_assert_eq!(first.len(), count.min(members));
            prop_assert_eq!(&draw(&all, count + 1, seed)[..count], &drawn[..]);
        }
    }

    #[test]
    fn seeds_differ_and_nothing_comes_of_nothing() {
        let all: Vec<u32> = (0..20).collect();
        assert_ne!(draw(&all, 10, 1), draw(&all, 10, 2));
        assert!(draw::<u32>(&[], 3, 1).is_empty());
    }
}
