//! Means with confidence intervals.

use crate::stats::{logarithms, mean, sample_standard_deviation};
use serde::{Deserialize, Serialize};

/// A mean and the half width of its 95 percent confidence interval (Student's t), both in the unit
/// of the values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    /// The mean.
    pub mean: f64,
    /// Half width of the interval; `None` for fewer than two values.
    pub ci95: Option<f64>,
    /// Number of values.
    pub n: usize,
}

impl ConfidenceInterval {
    /// Computes the interval of values; `None` without values, or if one is not finite.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        if !values.iter().all(|v| v.is_finite()) {
            return None;
        }
        let n = values.len();
        let mean = mean(values)?;
        let ci95 = half_width(values);
        Some(Self { mean, ci95, n })
    }

    /// The lower end, or the mean if the width is unknown.
    pub fn low(&self) -> f64 {
        self.mean - self.ci95.unwrap_or(0.0)
    }

    /// The upper end, or the mean if the width is unknown.
    pub fn high(&self) -> f64 {
        self.mean + self.ci95.unwrap_or(0.0)
    }
}

/// Student's t times the standard error; `None` for fewer than two values.
fn half_width(values: &[f64]) -> Option<f64> {
    let deviation = sample_standard_deviation(values)?;
    let t = t_975(values.len() - 1)?;
    Some(t * deviation / (values.len() as f64).sqrt())
}

/// A geometric mean of ratios with its 95 percent confidence interval, from `mean / factor95` to
/// `mean * factor95`.
///
/// The interval is computed on logarithms, so it never reaches below 0, and the interval of the
/// inverse ratio is its inverse. Fleming and Wallace, "How not to lie with statistics: the correct
/// way to summarize benchmark results", CACM 29(3), 1986, explain why the mean of ratios must be
/// geometric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatioInterval {
    /// The geometric mean.
    pub mean: f64,
    /// Factor between the mean and either end, at least 1; `None` for fewer than two ratios.
    pub factor95: Option<f64>,
    /// Number of ratios.
    pub n: usize,
}

impl RatioInterval {
    /// Computes the interval of ratios; `None` without ratios, or if one is not positive and
    /// finite.
    pub fn from_ratios(ratios: &[f64]) -> Option<Self> {
        let logs = logarithms(ratios)?;
        Some(Self {
            mean: libm::exp(mean(&logs)?),
            factor95: half_width(&logs).map(libm::exp),
            n: ratios.len(),
        })
    }

    /// Computes the interval of `ours[i] / theirs[i]`, paired by seed, for example of the
    /// throughputs of two policies. `None` if the lengths differ or a ratio is not positive and
    /// finite.
    pub fn from_pairs(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        if ours.len() != theirs.len() {
            return None;
        }
        let ratios = ours.iter().zip(theirs).map(|(our, their)| our / their);
        Self::from_ratios(&ratios.collect::<Vec<_>>())
    }

    /// The lower end, or the mean if the width is unknown.
    pub fn low(&self) -> f64 {
        self.mean / self.factor95.unwrap_or(1.0)
    }

    /// The upper end, or the mean if the width is unknown.
    pub fn high(&self) -> f64 {
        self.mean * self.factor95.unwrap_or(1.0)
    }

    /// Mean and one half width, for tables: the upper half, which is the longer.
    pub fn to_interval(&self) -> ConfidenceInterval {
        ConfidenceInterval {
            mean: self.mean,
            ci95: self.factor95.map(|_| self.high() - self.mean),
            n: self.n,
        }
    }
}

/// Upper 97.5 percent points for 1 to 29 degrees of freedom, as published in
/// the NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
const TABLE: [f64; 29] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045,
];

/// The 97.5 percent point of the normal distribution.
const NORMAL: f64 = 1.959_963_984_540_054;

/// The 97.5 percent point of Student's t distribution, which bounds a two-sided 95 percent
/// interval; `None` for 0 degrees of freedom.
///
/// Up to 29 degrees it is the published table; beyond, the expansion about the normal quantile in
/// M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 26.7.5. It uses only sums and
/// products, so that the bits are the same on every host.
pub fn t_975(degrees: usize) -> Option<f64> {
    let index = degrees.checked_sub(1)?;
    Some(
        TABLE
            .get(index)
            .copied()
            .unwrap_or_else(|| expansion(degrees as f64)),
    )
}

fn expansion(degrees: f64) -> f64 {
    let x = NORMAL;
    let square = x * x;
    let g1 = x * (square + 1.0) / 4.0;
    let g2 = x * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let g3 = x * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    x + (g1 + (g2 + g3 / degrees) / degrees) / degrees
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use statrs::distribution::{ContinuousCDF, StudentsT};

    #[test]
    fn an_interval_worked_by_hand() {
        // Mean 12, deviation 2, t for 2 degrees 4.303: 4.303 * 2 / sqrt 3.
        let interval = ConfidenceInterval::from_values(&[10.0, 12.0, 14.0]).unwrap();
        assert_eq!((interval.mean, interval.n), (12.0, 3));
        assert!((interval.ci95.unwrap() - 4.968_676_3).abs() < 1e-6);
        assert!((interval.high() + interval.low() - 24.0).abs() < 1e-12);
    }

    #[test]
    fn single_value_has_no_width() {
        let one = ConfidenceInterval::from_values(&[3.0]).unwrap();
        assert_eq!((one.mean, one.ci95, one.n), (3.0, None, 1));
        assert_eq!((one.low(), one.high()), (3.0, 3.0));
        assert_eq!(ConfidenceInterval::from_values(&[]), None);
        assert_eq!(ConfidenceInterval::from_values(&[1.0, f64::INFINITY]), None);
    }

    proptest! {
        #[test]
        fn equal_values_have_zero_width(value in -1e6f64..1e6, n in 2usize..40) {
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

    #[test]
    fn ratios_worked_by_hand() {
        // Logarithms 0 and ln 4: mean ln 2, deviation ln 4 / sqrt 2, and the
        // half width 12.706 * ln 4 / 2.
        let interval = RatioInterval::from_ratios(&[1.0, 4.0]).unwrap();
        assert!((interval.mean - 2.0).abs() < 1e-14);
        let expected = (12.706 * 4.0f64.ln() / 2.0).exp();
        assert!((interval.factor95.unwrap() / expected - 1.0).abs() < 1e-12);
    }

    #[test]
    fn pairs_are_matched_by_position() {
        let speedup = RatioInterval::from_pairs(&[2.0, 6.0], &[1.0, 3.0]).unwrap();
        assert!((speedup.mean - 2.0).abs() < 1e-14);
        assert!((speedup.factor95.unwrap() - 1.0).abs() < 1e-14);
        assert_eq!(speedup.n, 2);
        assert_eq!(RatioInterval::from_pairs(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(RatioInterval::from_pairs(&[1.0], &[0.0]), None);
        assert_eq!(RatioInterval::from_ratios(&[-1.0]), None);
        let single = RatioInterval::from_ratios(&[1.5]).unwrap();
        assert_eq!((single.factor95, single.to_interval().ci95), (None, None));
    }

    proptest! {
        #[test]
        fn the_inverse_ratio_has_the_inverse_interval(
            pairs in prop::collection::vec((0.1f64..10.0, 0.1f64..10.0), 2..20),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let (one, two) = (RatioInterval::from_pairs(&a, &b), RatioInterval::from_pairs(&b, &a));
            let (one, two) = (one.unwrap(), two.unwrap());
            prop_assert!((one.mean * two.mean - 1.0).abs() < 1e-9);
            prop_assert!((one.low() * two.high() - 1.0).abs() < 1e-9);
        }

        #[test]
        fn the_symmetric_form_covers_the_interval(ratios in prop::collection::vec(0.5f64..2.0, 2..20)) {
            let interval = RatioInterval::from_ratios(&ratios).unwrap();
            let symmetric = interval.to_interval();
            prop_assert!(symmetric.low() <= interval.low() + 1e-12);
            prop_assert!(symmetric.high() >= interval.high() - 1e-9 * interval.high());
        }
    }

    fn exact(degrees: usize) -> f64 {
        let distribution = StudentsT::new(0.0, 1.0, degrees as f64).unwrap();
        distribution.inverse_cdf(0.975)
    }

    #[test]
    fn table_matches_the_exact_quantiles() {
        for degrees in 1..=29 {
            let error = (t_975(degrees).unwrap() - exact(degrees)).abs();
            assert!(error <= 5.5e-4, "{degrees} degrees: off by {error}");
        }
    }

    #[test]
    fn expansion_matches_to_six_digits() {
        for degrees in [30, 31, 40, 60, 99, 1000] {
            let error = (t_975(degrees).unwrap() - exact(degrees)).abs();
            assert!(error <= 2e-6, "{degrees} degrees: off by {error}");
        }
    }

    #[test]
    fn more_runs_never_widen_the_interval() {
        assert_eq!(t_975(0), None);
        for degrees in 1..200 {
            assert!(t_975(degrees + 1) < t_975(degrees), "{degrees} degrees");
        }
    }
}
