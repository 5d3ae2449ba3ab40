//! Means with confidence intervals.

use super::{mean, sample_standard_deviation, t_975};
use serde::{Deserialize, Serialize};

/// A mean, the half width of its 95 percent confidence interval (Student's t),
/// A mean, the half width of its 95 percent confidence interval (Student's t), both in the unit of
/// the values, and the number of values that it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    /// The mean.
    pub mean: f64,
    /// Half width of the interval; none for fewer than two values.
    pub ci95: Option<f64>,
    /// Number of values.
    pub n: usize,
}

impl ConfidenceInterval {
    /// The interval of these values; `None` without values, or where one is not
    /// finite.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        if !values.iter().all(|v| v.is_finite()) {
            return None;
        }
        let n = values.len();
        let mean = mean(values)?;
        let ci95 = half_width(values);
        Some(Self { mean, ci95, n })
    }

    /// The lower end; the mean itself where the width is unknown.
    pub fn low(&self) -> f64 {
        self.mean - self.ci95.unwrap_or(0.0)
    }

    /// The upper end; the mean itself where the width is unknown.
    pub fn high(&self) -> f64 {
        self.mean + self.ci95.unwrap_or(0.0)
    }
}

/// Student's t times the standard error; `None` for fewer than two values.
pub(super) fn half_width(values: &[f64]) -> Option<f64> {
    let deviation = sample_standard_deviation(values)?;
    let t = t_975(values.len() - 1)?;
    Some(t * deviation / (values.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interval_worked_by_hand() {
        // Mean 12, deviation 2, t for 2 degrees 4.303: 4.303 * 2 / sqrt 3.
        let interval = ConfidenceInterval::from_values(&[10.0, 12.0, 14.0]).unwrap();
        assert_eq!((interval.mean, interval.n), (12.0, 3));
        assert!((interval.ci95.unwrap() - 4.968_676_3).abs() < 1e-6);
        assert!((interval.high() + interval.low() - 24.0).abs() < 1e-12);
    }

    #[test]
    fn one_value_has_no_width_and_none_no_mean() {
        let one = ConfidenceInterval::from_values(&[3.0]).unwrap();
        assert_eq!((one.mean, one.ci95, one.n), (3.0, None, 1));
        assert_eq!((one.low(), one.high()), (3.0, 3.0));
        assert_eq!(ConfidenceInterval::from_values(&[]), None);
        assert_eq!(ConfidenceInterval::from_values(&[1.0, f64::INFINITY]), None);
    }

    proptest! {
        #[test]
        fn equal_values_leave_no_doubt(value in -1e6f64..1e6, n in 2usize..40) {
            let width = ConfidenceInterval::from_values(&vec![value; n]).unwrap().ci95.unwrap();
            prop_assert!(width <= value.abs() * 1e-12);
        }

        #[test]
        fn width_scales_with_the_unit(
            values in prop::collection::vec(0.1f64..1e3, 2..20), factor in 0.1f64..100.0,
        ) {
            let scaled: Vec<f64> = values.iter().map(|v| v * factor).collect();
            let (one, two) = (ConfidenceInterval::from_values(&values).unwrap(), ConfidenceInterval::from_values(&scaled).unwrap());
            let slack = 1e-9 * factor * 1e3;
            prop_assert!((one.ci95.unwrap() * factor - two.ci95.unwrap()).abs() <= slack);
        }
    }
}
