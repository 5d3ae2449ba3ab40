//! Geometric means of ratios, with intervals.

use super::interval::half_width;
use super::{ConfidenceInterval, logarithms, mean};
use serde::{Deserialize, Serialize};

/// A geometric mean of ratios with a 95 percent confidence interval that is
/// computed on logarithms: it reaches from `mean / factor95` to
/// `mean * factor95`, never below 0, and the interval of the inverse ratio is
/// its inverse. Fleming and Wallace, "How not to lie with statistics: the
/// correct way to summarize benchmark results", CACM 29(3), 1986, on why ratios
/// are averaged so.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatioInterval {
    /// The geometric mean.
    pub mean: f64,
    /// The factor, at least 1, between mean and either end; none for fewer than
    /// two ratios.
    pub factor95: Option<f64>,
    /// Number of ratios.
    pub n: usize,
}

impl RatioInterval {
    /// The interval of these ratios; `None` without ratios, or where one is not
    /// positive and finite.
    pub fn from_ratios(ratios: &[f64]) -> Option<Self> {
        let logs = logarithms(ratios)?;
        Some(Self {
            mean: libm::exp(mean(&logs)?),
            factor95: half_width(&logs).map(libm::exp),
            n: ratios.len(),
        })
    }

    /// The interval of `ours[i] / theirs[i]`, paired by seed, for example the
    /// throughputs of two policies. `None` where the lengths differ, and as for
    /// [`RatioInterval::from_ratios`].
    pub fn from_pairs(ours: &[f64], theirs: &[f64]) -> Option<Self> {
        if ours.len() != theirs.len() {
            return None;
        }
        let ratios = ours.iter().zip(theirs).map(|(our, their)| our / their);
        Self::from_ratios(&ratios.collect::<Vec<_>>())
    }

    /// The lower end; the mean itself where the width is unknown.
    pub fn low(&self) -> f64 {
        self.mean / self.factor95.unwrap_or(1.0)
    }

    /// The upper end; the mean itself where the width is unknown.
    pub fn high(&self) -> f64 {
        self.mean * self.factor95.unwrap_or(1.0)
    }

    /// Mean and one half width, for tables: the upper half, which is the longer one.
    pub fn to_interval(&self) -> ConfidenceInterval {
        ConfidenceInterval {
            mean: self.mean,
            ci95: self.factor95.map(|_| self.high() - self.mean),
            n: self.n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}
