//! Checks of what a program file says of short stretches.

use super::{ROUNDING, check_mix};
use crate::describe::Problems;
use crate::program::StretchSpec;

pub(super) fn check(key: &str, all: Option<&[StretchSpec]>, problems: &mut Problems) {
    let Some(all) = all else { return };
    for (at, each) in all.iter().enumerate() {
        let key = |name: &str| format!("{key}[{at}].{name}");
        problems.check_range(key("share"), each.share, 0.0, 1.0);
        problems.check_range(key("operations"), each.operations, 1.0, 16.0);
        problems.check_range(key("taken"), each.taken, 0.0, 1.0);
        check_mix(&key("mix"), &each.mix, problems);
        problems.check_range(key("multiply"), each.multiply, 0.0, each.mix.int);
        problems.check_range(key("moves"), each.moves, 0.0, each.mix.vector);
    }
    let sum: f64 = all.iter().map(|each| each.share).sum();
    problems.require(
        (sum - 1.0).abs() <= ROUNDING,
        key,
        format!("have shares that sum to {sum}; expected 1"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: StretchSpec = StretchSpec {
        share: 0.5,
        operations: 1.0,
        taken: 0.1,
        mix: crate::program::MixSpec {
            int: 0.6,
            load: 0.4,
            ..crate::program::MixSpec::NONE
        },
        multiply: 0.0,
        moves: 0.0,
    };

    fn wrong(all: &[StretchSpec]) -> Vec<String> {
        let mut problems = Problems::default();
        check("stretches", Some(all), &mut problems);
        problems.list().iter().map(|p| p.key.clone()).collect()
    }

    #[test]
    fn every_key_has_its_range_and_shares_sum_to_one() {
        assert!(wrong(&[ONE, ONE]).is_empty());
        assert_eq!(wrong(&[ONE]), ["stretches"]);
        assert_eq!(wrong(&[]), ["stretches"]);
        let with = |change: fn(&mut StretchSpec)| {
            let mut other = ONE;
            change(&mut other);
            wrong(&[ONE, other])
        };
        assert_eq!(with(|s| s.operations = 0.5), ["stretches[1].operations"]);
        assert_eq!(with(|s| s.taken = -0.1), ["stretches[1].taken"]);
        assert_eq!(with(|s| s.mix.int = 0.1), ["stretches[1].mix"]);
        // No more of a kind than there is of its class.
        assert_eq!(with(|s| s.multiply = 0.7), ["stretches[1].multiply"]);
        assert_eq!(with(|s| s.moves = 0.1), ["stretches[1].moves"]);
    }
}
