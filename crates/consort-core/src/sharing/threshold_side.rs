//! Probability that a measured value lies above a threshold.
//!
//! The error is taken for normal, with the width that makes the 95 percent interval what it is: at
//! the end of an interval the answer is 2.5 or 97.5 percent, as the interval says.

use crate::stats::{ConfidenceInterval, RatioInterval};

/// The 97.5 percent point of the normal distribution.
const NORMAL_975: f64 = 1.959_963_984_540_054;

/// Probability from which a side of a threshold counts as decided: the 95 percent interval does not
/// reach across then.
const DECIDED: f64 = 0.975;

/// Side of a threshold on which a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ThresholdSide {
    /// Above, with this probability.
    Above(f64),
    /// Below, with this probability.
    Below(f64),
    /// Both sides are within the interval, or no width is known.
    Both,
}

/// The side of `threshold` on which a ratio is.
pub(super) fn side_of_ratio(value: &RatioInterval, threshold: f64) -> ThresholdSide {
    let width = value.factor95.map(libm::log);
    side(libm::log(value.mean), width, libm::log(threshold))
}

/// The side of `threshold` on which a quantity is.
pub(super) fn side_of(value: &ConfidenceInterval, threshold: f64) -> ThresholdSide {
    side(value.mean, value.ci95, threshold)
}

fn side(mean: f64, width95: Option<f64>, threshold: f64) -> ThresholdSide {
    let Some(width) = width95 else {
        return ThresholdSide::Both;
    };
    let above = probability_above(mean, width, threshold);
    if above >= DECIDED {
        ThresholdSide::Above(above)
    } else if above <= 1.0 - DECIDED {
        ThresholdSide::Below(1.0 - above)
    } else {
        ThresholdSide::Both
    }
}

fn probability_above(mean: f64, width95: f64, threshold: f64) -> f64 {
    let distance = mean - threshold;
    if width95 <= 0.0 {
        return match distance.total_cmp(&0.0) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
    }
    let z = NORMAL_975 * distance / width95;
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ends_of_an_interval_are_decided_and_its_inside_is_not() {
        let at = |mean: f64| probability_above(mean, 0.1, 1.0);
        assert!((at(1.1) - 0.975).abs() < 1e-9);
        assert!((at(0.9) - 0.025).abs() < 1e-9);
        assert!((at(1.0) - 0.5).abs() < 1e-12);
        assert_eq!(side(1.05, Some(0.1), 1.0), ThresholdSide::Both);
        assert_eq!(side(9.0, None, 1.0), ThresholdSide::Both);
        assert_eq!(side(2.0, Some(0.0), 1.0), ThresholdSide::Above(1.0));
        assert_eq!(side(1.0, Some(0.0), 1.0), ThresholdSide::Both);
    }

    proptest! {
        #[test]
        fn nearer_values_are_never_surer(
            mean in 0.5f64..2.0, width in 0.001f64..1.0, by in 0.0f64..1.0,
        ) {
            let near = probability_above(mean, width, 1.0);
            let far = probability_above(mean + by, width, 1.0);
            prop_assert!(far >= near && (0.0..=1.0).contains(&near));
        }
    }
}
