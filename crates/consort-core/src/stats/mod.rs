//! Statistics of repeated runs.
//!
//! [`ConfidenceInterval::from_values`] gives a mean with its 95 percent confidence interval,
//! [`RatioInterval::from_ratios`] the same for ratios, and [`RatioInterval::from_pairs`] compares
//! one policy with another over the same seeds. An interval needs two runs, and contains no error
//! that all runs share. Logarithm and exponential come from the `libm` crate, not from the host, so
//! that results have the same bits everywhere.

mod effects;
mod interval;

pub use effects::{EffectCell, EffectShares, MainEffects};
pub use interval::{ConfidenceInterval, RatioInterval, t_975};

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)
}

/// Geometric mean; `None` without values, or if one is not positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    mean(&logarithms(values)?).map(libm::exp)
}

/// Sample standard deviation, with n - 1 in the denominator; `None` for fewer than two values.
pub fn sample_standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - centre) * (v - centre)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Value below which a share `q` of the values lies, interpolated between neighbours (type 7 of
/// Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50,
/// 1996). `None` without values, with a NaN among them, or with `q` outside 0 to 1.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    if values.iter().any(|v| v.is_nan()) || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = q * sorted.len().checked_sub(1)? as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    let fraction = position - position.floor();
    // Equal neighbours may be infinite, and infinity times zero is not a number.
    Some(if below == above {
        below
    } else {
        below + fraction * (above - below)
    })
}

/// Natural logarithms; `None` if a value is not positive and finite.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let log = |&value: &f64| (value > 0.0 && value.is_finite()).then(|| libm::log(value));
    values.iter().map(log).collect()
}

/// Spearman's rank correlation; ties have their mean rank. `None` for fewer than two pairs, or if
/// one side is all equal.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let ranked: Vec<(f64, f64)> = ranks(&a).into_iter().zip(ranks(&b)).collect();
    pearson(&ranked)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count();
        let equal = values.iter().filter(|other| *other == value).count();
        below as f64 + 0.5 * (equal as f64 + 1.0)
    };
    values.iter().map(rank).collect()
}

/// Pearson's correlation; `None` for fewer than two pairs, or if one side does not vary by more than
/// rounding.
pub fn pearson(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: fn(f64, f64) -> f64| pairs.iter().map(|p| of(p.0 - x, p.1 - y)).sum::<f64>();
    let (xx, yy, xy) = (sum(|a, _| a * a), sum(|_, b| b * b), sum(|a, b| a * b));
    let varies = |square: f64, mean: f64| square > n * mean * mean * 1e-24;
    (varies(xx, x) && varies(yy, y)).then(|| xy / libm::sqrt(xx * yy))
}

/// Quantile of the normal distribution that leaves 2.5 percent above.
const Z_975: f64 = 1.959_963_984_540_054;

/// The 95 percent confidence interval of a share that was found among `n` draws, 0 to 1; `None`
/// without draws.
///
/// Wilson ("Probable Inference, the Law of Succession, and Statistical Inference", 1927): the
/// interval holds for few draws and for shares near 0 and 1. Draws that come in runs, for example
/// because a program has phases, vary more.
pub fn share_interval(share: f64, n: u64) -> Option<(f64, f64)> {
    if n == 0 || !(0.0..=1.0).contains(&share) {
        return None;
    }
    let (n, squared) = (n as f64, Z_975 * Z_975);
    let centre = share + squared / (2.0 * n);
    let variance = share * (1.0 - share) / n + squared / (4.0 * n * n);
    let half = Z_975 * libm::sqrt(variance);
    let whole = 1.0 + squared / n;
    let (low, high) = ((centre - half) / whole, (centre + half) / whole);
    Some((low.clamp(0.0, share), high.clamp(share, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_worked_by_hand() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        assert_eq!(mean(&values), Some(5.0));
        // Squared distances sum to 32; 32 / 7 is 4.571.
        let deviation = sample_standard_deviation(&values).unwrap();
        assert!((deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-15);
        assert!((geometric_mean(&[1.0, 4.0, 16.0]).unwrap() - 4.0).abs() < 1e-14);
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.5), Some(2.5));
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.25), Some(1.75));
    }

    #[test]
    fn too_few_values_have_no_statistic() {
        assert_eq!(mean(&[]), None);
        assert_eq!(geometric_mean(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
        assert_eq!(sample_standard_deviation(&[1.0]), None);
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0], 1.5), None);
        assert_eq!(quantile(&[1.0, f64::NAN], 0.5), None);
    }

    #[test]
    fn geometric_mean_has_portable_bits() {
        let value = geometric_mean(&[1.1, 0.9, 1.37]).unwrap();
        assert!((value * value * value - 1.1 * 0.9 * 1.37).abs() < 1e-15);
        // As computed on x86-64; a host that differs is the finding.
        assert_eq!(value.to_bits(), 0x3ff1_b5f8_08ba_584a);
    }

    proptest! {
        #[test]
        fn means_lie_between_the_extremes(values in prop::collection::vec(1e-6f64..1e6, 1..50)) {
            let (low, high) = (quantile(&values, 0.0).unwrap(), quantile(&values, 1.0).unwrap());
            let arithmetic = mean(&values).unwrap();
            let geometric = geometric_mean(&values).unwrap();
            let slack = 1.0 + 1e-12;
            prop_assert!(low <= geometric * slack && geometric <= arithmetic * slack);
            prop_assert!(arithmetic <= high * slack);
        }

        #[test]
        fn quantiles_grow_with_the_share(
            values in prop::collection::vec(-1e6f64..1e6, 1..50),
            shares in (0.0f64..=1.0, 0.0f64..=1.0),
        ) {
            let (low, high) = (shares.0.min(shares.1), shares.0.max(shares.1));
            prop_assert!(quantile(&values, low) <= quantile(&values, high));
        }

        #[test]
        fn shift_moves_mean_not_deviation(
            values in prop::collection::vec(-1e3f64..1e3, 2..50), by in -1e3f64..1e3,
        ) {
            let shifted: Vec<f64> = values.iter().map(|v| v + by).collect();
            prop_assert!((mean(&shifted).unwrap() - mean(&values).unwrap() - by).abs() < 1e-9);
            let (one, two) = (sample_standard_deviation(&values), sample_standard_deviation(&shifted));
            prop_assert!((one.unwrap() - two.unwrap()).abs() < 1e-9);
        }
    }

    #[test]
    fn ranks_agree_whatever_the_scale() {
        assert_eq!(spearman(&[(1.0, 10.0), (2.0, 1e3), (3.0, 1e9)]), Some(1.0));
        assert_eq!(spearman(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), Some(-1.0));
        assert_eq!(spearman(&[(1.0, 2.0), (1.0, 3.0)]), None);
        // Ranks 1.5, 1.5, 3 against 1, 2, 3: covariance 1.5, spreads 1.5 and 2.
        let tied = spearman(&[(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)]).unwrap();
        assert!((tied - 1.5 / 3.0f64.sqrt()).abs() < 1e-12, "{tied}");
    }

    #[test]
    fn correlation_of_values() {
        // By hand: deviations (-1, 0, 1) and (-1, 1, 0), so 1/√(2·2).
        let r = pearson(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0)]).unwrap();
        assert!((r - 0.5).abs() < 1e-12, "{r}");
        let cross = [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (1.0, 1.0)];
        assert_eq!(pearson(&cross), Some(0.0));
        assert_eq!(pearson(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(pearson(&[(1.0, 1.0)]), None);
        assert_eq!(pearson(&[]), None);
    }

    proptest! {
        #[test]
        fn points_on_a_line_correlate_fully(
            slope in prop_oneof![-9.0f64..-0.1, 0.1f64..9.0],
            xs in prop::collection::btree_set(-50i32..50, 3..9),
        ) {
            let line = xs.iter().map(|&x| (f64::from(x), 3.0 + slope * f64::from(x)));
            let r = pearson(&line.collect::<Vec<_>>()).unwrap();
            prop_assert!((r - slope.signum()).abs() < 1e-9);
        }

        #[test]
        fn correlation_is_between_minus_1_and_1(pairs in prop::collection::vec((0.0f64..9.0, 0.0f64..9.0), 2..20)) {
            if let Some(rho) = spearman(&pairs) {
                prop_assert!(rho.abs() <= 1.0 + 1e-12);
            }
        }
    }

    #[test]
    fn an_interval_of_the_literature() {
        // Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I,
        // method 3: 81 of 263.
        let (low, high) = share_interval(81.0 / 263.0, 263).unwrap();
        assert!(
            (low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5,
            "{low} {high}"
        );
    }

    #[test]
    fn without_draws_there_is_no_interval() {
        assert_eq!(share_interval(0.5, 0), None);
        assert_eq!(share_interval(f64::NAN, 5), None);
    }

    proptest! {
        #[test]
        fn interval_contains_share_and_narrows(share in 0.0..=1.0, n in 1u64..10_000) {
            let (low, high) = share_interval(share, n).unwrap();
            prop_assert!((0.0..=share).contains(&low) && (share..=1.0).contains(&high));
            let (more_low, more_high) = share_interval(share, 4 * n).unwrap();
            prop_assert!(more_high - more_low < high - low);
        }
    }
}
