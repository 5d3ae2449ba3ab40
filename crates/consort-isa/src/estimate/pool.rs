//! Blocks too small or too rarely hit to be judged one by one, taken together.
//!
//! In one such block a single sample behind a load may be chance. Over all of
//! them the samples on suspected instructions are compared with those that an
//! even spread would put there: the ratio of the two densities, in retired
//! groups, is what an average instruction of that suspicion is worth.

use super::calibrate::{RETIRE_WIDTH, Worth, as_f64};
use super::histogram::{Histogram, Pile};
use super::split::{Split, split};
use super::tally::{KINDS, NONE, by_suspicion};

/// Samples by suspicion, and the weight that an even spread would give them.
#[derive(Clone, Copy, Debug, Default)]
struct Density {
    pile: Pile,
    even_weight: f64,
}

/// Several blocks together.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    densities: [Density; KINDS.len()],
}

impl Pool {
    pub(super) fn add(&mut self, histogram: &Histogram) {
        let even_weight = histogram.total().weight / as_f64(histogram.len());
        for (density, tally) in self.densities.iter_mut().zip(by_suspicion(histogram)) {
            density.pile.add(tally.pile);
            density.even_weight += even_weight * as_f64(tally.instructions);
        }
    }

    /// Per suspicion: the weight of its samples and how to split it.
    pub(super) fn splits(&self) -> impl Iterator<Item = (f64, Split)> {
        KINDS
            .iter()
            .zip(&self.densities)
            .map(|(&suspicion, density)| {
                let worth = self.worth(*density);
                (density.pile.weight, split(suspicion, worth, None))
            })
    }

    fn worth(&self, density: Density) -> Worth {
        Worth {
            cycles: self.density_ratio(density) / RETIRE_WIDTH,
            base_cycles: 1.0 / RETIRE_WIDTH,
            calibrated: true,
        }
    }

    /// How much more often than an instruction without suspicion one of these
    /// was sampled, cautiously.
    fn density_ratio(&self, density: Density) -> f64 {
        let rest = self.densities[NONE];
        if density.even_weight <= 0.0 || rest.even_weight <= 0.0 {
            return 0.0;
        }
        let one_sample = density.pile.mean_weight();
        let suspected = density.pile.cautious_weight() / density.even_weight;
        suspected / ((rest.pile.weight + one_sample) / rest.even_weight)
    }
}
