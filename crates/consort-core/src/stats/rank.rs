//! Rank correlation.

/// Spearman's rank correlation; ties have their mean rank. None for fewer than two pairs, or
/// where one side is all equal.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    pearson(&ranks(&a), &ranks(&b))
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + 0.5 * (equal as f64 + 1.0)
    };
    values.iter().map(rank).collect()
}

fn pearson(a: &[f64], b: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (ma, mb) = (mean(a), mean(b));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(x, y)| of(x - ma, y - mb)).sum()
    };
    let spread = (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt();
    (spread > 0.0).then(|| sum(&|x, y| x * y) / spread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranks_agree_whatever_the_scale() {
        assert_eq!(spearman(&[(1.0, 10.0), (2.0, 1e3), (3.0, 1e9)]), Some(1.0));
        assert_eq!(spearman(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), Some(-1.0));
        assert_eq!(spearman(&[(1.0, 2.0), (1.0, 3.0)]), None);
        // Ranks 1.5, 1.5, 3 against 1, 2, 3: covariance 1.5, spreads 1.5 and 2.
        let tied = spearman(&[(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)]).unwrap();
        assert!((tied - 1.5 / 3.0f64.sqrt()).abs() < 1e-12, "{tied}");
    }

    proptest! {
        #[test]
        fn correlation_is_between_minus_1_and_1(pairs in prop::collection::vec((0.0f64..9.0, 0.0f64..9.0), 2..20)) {
            if let Some(rho) = spearman(&pairs) {
                prop_assert!(rho.abs() <= 1.0 + 1e-12);
            }
        }
    }
}
