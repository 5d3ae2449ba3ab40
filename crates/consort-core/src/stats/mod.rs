//! Statistics of repeated runs.
//!
//! Purpose: means with 95 percent confidence intervals. Usage: [`ConfidenceInterval::from_values`]
//! for quantities, [`RatioInterval::from_ratios`] for ratios, [`RatioInterval::from_pairs`]
//! for one policy against another over the same seeds. Pitfalls: an interval
//! needs two runs, and says nothing about error that all runs share. Logarithm
//! and exponential come from the `libm` crate, not from the host, so that
//! results have the same bits everywhere.

mod interval;
mod rank;
mod ratio;
mod share;
mod student;

pub use interval::ConfidenceInterval;
pub use rank::spearman;
pub use ratio::RatioInterval;
pub use share::share_interval;
pub use student::t_975;

/// Arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)
}

/// Geometric mean; `None` without values, or where one is not positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    mean(&logarithms(values)?).map(libm::exp)
}

/// Sample standard deviation, with n - 1 in the denominator; `None` for fewer
/// than two values.
pub fn sample_standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - centre) * (v - centre)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The value below which a share `q` of the values lies, interpolated between
/// neighbours (type 7 of Hyndman and Fan, "Sample quantiles in statistical
/// packages", The American Statistician 50, 1996). `None` without values, with
/// a NaN among them, or with `q` outside 0 to 1.
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

/// Natural logarithms; `None` where a value is not positive and finite.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let log = |&value: &f64| (value > 0.0 && value.is_finite()).then(|| libm::log(value));
    values.iter().map(log).collect()
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
    fn the_geometric_mean_has_the_same_bits_on_every_host() {
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
        fn shifting_moves_the_mean_and_leaves_the_deviation(
            values in prop::collection::vec(-1e3f64..1e3, 2..50), by in -1e3f64..1e3,
        ) {
            let shifted: Vec<f64> = values.iter().map(|v| v + by).collect();
            prop_assert!((mean(&shifted).unwrap() - mean(&values).unwrap() - by).abs() < 1e-9);
            let (one, two) = (sample_standard_deviation(&values), sample_standard_deviation(&shifted));
            prop_assert!((one.unwrap() - two.unwrap()).abs() < 1e-9);
        }
    }
}
