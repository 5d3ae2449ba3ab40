//! Kinds of cores, told apart by a number that each core has.

/// Ratio of a value to the next larger one, in percent, from which on the two are of one kind.
///
/// Preferred cores of one type (Intel Turbo Boost Max 3.0, AMD preferred cores)
/// are ranked in steps of a few percent, a ladder that may span a quarter of the
/// scale; clusters of phones that share a microarchitecture are clocked 12
/// percent apart or more.
const SAME_KIND_PERCENT: u64 = 90;

/// The kind of each value, 0 for the largest: a new kind begins where the next
/// smaller value is less than 90 percent of its neighbour.
///
/// Pitfall: a ladder of which most steps are offline may show a gap.
pub(crate) fn kinds(values: &[u64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    sorted.dedup();
    let gap = |pair: &[u64]| {
        u128::from(pair[1]) * 100 < u128::from(pair[0]) * u128::from(SAME_KIND_PERCENT)
    };
    let last_of_kinds: Vec<u64> = sorted.windows(2).filter(|p| gap(p)).map(|p| p[0]).collect();
    let kind = |value: &u64| last_of_kinds.iter().filter(|&last| value < last).count();
    values.iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn types_are_told_apart_and_preferred_cores_are_not() {
        assert_eq!(kinds(&[1024, 446, 1024, 446]), [0, 1, 0, 1]);
        assert_eq!(kinds(&[325, 871, 1024]), [2, 1, 0]);
        assert_eq!(kinds(&[166, 161, 156, 151, 146, 141, 136, 131]), [0; 8]);
        assert_eq!(kinds(&[66, 62, 39]), [0, 0, 1]);
        assert_eq!(kinds(&[0, 0]), [0, 0]);
        assert!(kinds(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn kinds_follow_the_order_of_the_values(values in prop::collection::vec(any::<u64>(), 0..12)) {
            let kinds = kinds(&values);
            for (a, x) in values.iter().zip(&kinds) {
                for (b, y) in values.iter().zip(&kinds) {
                    prop_assert!(a < b || x <= y);
                }
            }
        }
    }
}
