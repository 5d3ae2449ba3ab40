//! The effect of managing, estimated from pairs of stretches or runs.
//!
//! Each pair has one value managed and one unmanaged, directly one after the other, and counts with
//! the logarithm of their ratio. The order within each pair is random, and the mean of the two orders'
//! means is free of a constant drift: half of their difference is the drift from one stretch to the
//! next.

use crate::stats::t_975;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Pairs that an effect remembers, so that a running effect follows what programs do now.
const KEPT: usize = 256;
/// Degrees of freedom below which an interval is too wide to be of use.
const LEAST_FREEDOM: usize = 2;
/// Error probability of an interval.
const ALPHA: f64 = 0.05;
/// Variance of the prior of an effect over the variance of a pair, in the interval that holds at any
/// time: the weight of one pair.
const PRIOR: f64 = 1.0;

/// Ratio of progress, managed over unmanaged, with its interval. Above 1 managing is faster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectEstimate {
    /// Geometric mean of the ratios.
    pub ratio: f64,
    /// Lower end of the 95 percent interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Number of pairs.
    pub pairs: usize,
}

/// Pairs of progress, managed and unmanaged, and the effect that they show.
#[derive(Clone, Debug, Default)]
pub struct PairedEffect {
    pairs: VecDeque<OrderedPair>,
}

#[derive(Clone, Copy, Debug)]
struct OrderedPair {
    log_ratio: f64,
    managed_first: bool,
}

/// A mean of logarithms with its standard error.
struct PairFit {
    mean: f64,
    error: f64,
    freedom: usize,
}

impl PairedEffect {
    /// Adds a pair. Values that are not positive and finite show no progress that could be compared,
    /// and the pair is left out.
    pub fn add(&mut self, managed: f64, unmanaged: f64, managed_first: bool) {
        let log_ratio = libm::log(managed) - libm::log(unmanaged);
        if managed > 0.0 && unmanaged > 0.0 && log_ratio.is_finite() {
            if self.pairs.len() == KEPT {
                self.pairs.pop_front();
            }
            self.pairs.push_back(OrderedPair {
                log_ratio,
                managed_first,
            });
        }
    }

    /// Number of pairs.
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// The effect with the interval of Student's t, which contains the truth in 95 of 100 trials that
    /// end independently of what they show. `None` for fewer than 4 pairs.
    pub fn estimate(&self) -> Option<EffectEstimate> {
        let fit = self.fit()?;
        Some(self.around(&fit, t_975(fit.freedom)? * fit.error))
    }

    /// The effect with an interval that contains the truth at every number of pairs at once in 95 of
    /// 100 trials, so that a trial may end because of it. `None` until there are enough pairs.
    ///
    /// It is the set of effects that the Bayes factor of M. Gönen, W. Johnson, Y. Lu and P. Westfall,
    /// "The Bayesian two-sample t test", The American Statistician 59, 2005, does not refute by 20 to
    /// 1: with n pairs, ν degrees of freedom and a prior of g = 1,
    /// `((1 + t²/ν) / (1 + t²/(ν(1 + ng))))^((ν + 1)/2) / √(1 + ng)`. That ratio is a martingale
    /// where there is no effect (A. Hendriksen, R. de Heide, P. Grünwald, "Optional stopping with
    /// Bayes factors", Bayesian Analysis 16, 2021).
    pub fn anytime(&self) -> Option<EffectEstimate> {
        let fit = self.fit()?;
        let freedom = fit.freedom as f64;
        let spread = 1.0 + self.pairs.len() as f64 * PRIOR;
        let bound = libm::pow(spread / (ALPHA * ALPHA), 1.0 / (freedom + 1.0));
        let room = 1.0 - bound / spread;
        let radius = (freedom * (bound - 1.0) / room).sqrt() * fit.error;
        (room > 0.0).then(|| self.around(&fit, radius))
    }

    fn around(&self, fit: &PairFit, radius: f64) -> EffectEstimate {
        EffectEstimate {
            ratio: libm::exp(fit.mean),
            low: libm::exp(fit.mean - radius),
            high: libm::exp(fit.mean + radius),
            pairs: self.pairs.len(),
        }
    }

    /// Least squares of an effect and a drift that changes its sign with the order.
    fn fit(&self) -> Option<PairFit> {
        let mut orders = [(0.0, 0.0); 2];
        for pair in &self.pairs {
            let (count, sum) = &mut orders[usize::from(pair.managed_first)];
            *count += 1.0;
            *sum += pair.log_ratio;
        }
        let used = orders.iter().filter(|(count, _)| *count > 0.0).count();
        let freedom = self.pairs.len().checked_sub(used)?;
        if freedom < LEAST_FREEDOM {
            return None;
        }
        let means = orders.map(|(count, sum)| if count > 0.0 { sum / count } else { 0.0 });
        let squares: f64 = { self.pairs.iter() }
            .map(|pair| pair.log_ratio - means[usize::from(pair.managed_first)])
            .map(|residual| residual * residual)
            .sum();
        let weights = orders.iter().filter(|(count, _)| *count > 0.0);
        let weight: f64 = weights.map(|(count, _)| 1.0 / count).sum();
        let variance = squares / freedom as f64;
        Some(PairFit {
            mean: means.iter().sum::<f64>() / used as f64,
            error: (variance * weight).sqrt() / used as f64,
            freedom,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicyRng;
    use rand::{RngExt, SeedableRng};

    fn from_logs(pairs: &[(f64, bool)]) -> PairedEffect {
        let mut effect = PairedEffect::default();
        for &(log_ratio, managed_first) in pairs {
            effect.add(libm::exp(log_ratio), 1.0, managed_first);
        }
        effect
    }

    #[test]
    fn constant_drift_cancels() {
        // An effect of 0.02 and a drift of 0.1 per stretch, with residuals of 0.01.
        let effect = from_logs(&[(-0.07, true), (-0.09, true), (0.11, false), (0.13, false)]);
        let found = effect.estimate().unwrap();
        assert!((libm::log(found.ratio) - 0.02).abs() < 1e-12);
        // Four residuals of 0.01 and 2 degrees of freedom: variance 2e-4; of a mean of two means of
        // two 2e-4 / 4; Student's t is 4.303.
        let half = 4.303 * (2e-4_f64 / 4.0).sqrt();
        assert!((libm::log(found.high) - 0.02 - half).abs() < 1e-9);
        assert!((libm::log(found.low) - 0.02 + half).abs() < 1e-9);
    }

    #[test]
    fn few_or_meaningless_pairs_show_nothing() {
        let mut effect = from_logs(&[(0.0, true), (0.1, false), (0.0, true)]);
        assert_eq!(effect.estimate(), None);
        for (managed, unmanaged) in [(0.0, 1.0), (1.0, 0.0), (-1.0, -1.0), (f64::NAN, 1.0)] {
            effect.add(managed, unmanaged, true);
        }
        effect.add(f64::INFINITY, 1.0, true);
        assert_eq!(effect.pairs(), 3);
    }

    #[test]
    fn only_recent_pairs_count() {
        let mut effect = PairedEffect::default();
        for n in 0..2 * KEPT {
            let ratio = if n < KEPT { 2.0 } else { 1.0 };
            effect.add(ratio, 1.0, n % 2 == 0);
        }
        assert_eq!(effect.pairs(), KEPT);
        assert!((effect.estimate().unwrap().ratio - 1.0).abs() < 1e-12);
    }

    /// A normal deviate, by twelve uniform ones.
    fn deviate(rng: &mut PolicyRng) -> f64 {
        (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
    }

    #[test]
    fn interval_at_any_time_seldom_excludes_the_truth_at_all() {
        let mut wrong = 0;
        for seed in 0..400 {
            let mut rng = PolicyRng::seed_from_u64(seed);
            let mut effect = PairedEffect::default();
            let excludes = (0..100).any(|n| {
                effect.add(libm::exp(0.05 * deviate(&mut rng)), 1.0, n % 2 == 0);
                let found = effect.anytime();
                found.is_some_and(|found| found.low > 1.0 || found.high < 1.0)
            });
            wrong += usize::from(excludes);
        }
        assert!(wrong <= 20, "{wrong} of 400");
    }

    #[test]
    fn plain_harm_shows_at_any_time_after_few_pairs() {
        let mut rng = PolicyRng::seed_from_u64(1);
        let mut effect = PairedEffect::default();
        let mut needed = 0;
        while effect.anytime().is_none_or(|found| found.high >= 1.0) {
            effect.add(
                0.5 * libm::exp(0.03 * deviate(&mut rng)),
                1.0,
                needed % 2 == 0,
            );
            needed += 1;
        }
        assert!(needed <= 8, "{needed}");
    }
}
