//! Blocks too small or too rarely hit to be judged one by one, taken together.
//!
//! In one such block a single sample behind a load may be chance. Over all of
//! them the samples on suspected instructions are compared with those that an
//! even spread would put there: the ratio of the two densities, in retired
//! groups, is what an average pile of that suspicion is worth.

use super::calibrate::{RETIRE_WIDTH, Worth, as_f64};
use super::histogram::{Histogram, Pile};
use super::split::{Split, split};
use crate::Suspicion;

/// The suspicions that are told apart, none last.
const KINDS: [Suspicion; 6] = [
    Suspicion::Memory { chained: true },
    Suspicion::Memory { chained: false },
    Suspicion::MemoryOrUnit,
    Suspicion::Unit,
    Suspicion::FrontEnd,
    Suspicion::None,
];

const NONE: usize = KINDS.len() - 1;

/// Samples by suspicion, and the weight that an even spread would give them.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    seen: Pile,
    even_weight: f64,
}

/// Several blocks together.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    tallies: [Tally; KINDS.len()],
}

impl Pool {
    pub(super) fn add(&mut self, histogram: &Histogram) {
        let even_weight = histogram.total().weight / as_f64(histogram.len());
        for (pile, suspicion) in histogram.piles() {
            let tally = &mut self.tallies[kind_index(suspicion)];
            tally.seen.add(pile);
            tally.even_weight += even_weight;
        }
    }

    /// Per suspicion: the weight of its samples and how to split it.
    pub(super) fn splits(&self) -> impl Iterator<Item = (f64, Split)> {
        KINDS.iter().zip(&self.tallies).map(|(&suspicion, tally)| {
            let worth = self.worth(*tally);
            (tally.seen.weight, split(suspicion, worth, None))
        })
    }

    fn worth(&self, tally: Tally) -> Worth {
        Worth {
            cycles: self.density_ratio(tally) / RETIRE_WIDTH,
            calibrated: true,
        }
    }

    /// How much more often than an instruction without suspicion one of these
    /// was sampled, cautiously.
    fn density_ratio(&self, tally: Tally) -> f64 {
        let rest = self.tallies[NONE];
        if tally.even_weight <= 0.0 || rest.even_weight <= 0.0 {
            return 0.0;
        }
        let one_sample = tally.seen.mean_weight();
        let density = tally.seen.cautious_weight() / tally.even_weight;
        density / ((rest.seen.weight + one_sample) / rest.even_weight)
    }
}

fn kind_index(suspicion: Suspicion) -> usize {
    KINDS
        .iter()
        .position(|&kind| kind == suspicion)
        .unwrap_or(NONE)
}
