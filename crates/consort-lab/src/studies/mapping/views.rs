//! Values and cells from the runs of programs under mappings; gains over `os` in percent.

use super::measures::{MappedRunValue, SECONDS};
use super::plan::ProgramNamePair;
use super::sweep::PairRuns;
use crate::frame::{interval_cell, paired_ratio_cell};
use consort_core::stats::{ConfidenceInterval, RatioInterval, geometric_mean};
use consort_data::Cell;

impl PairRuns {
    /// A value of the program at one place of a pair under a mapping, seed by seed.
    pub fn values(
        &self,
        pair: ProgramNamePair,
        place: usize,
        mapping: &str,
        value: MappedRunValue,
    ) -> Vec<f64> {
        let runs = self.both(pair, mapping).iter();
        runs.map(|both| value(&both[place])).collect()
    }

    /// Mean over seeds of a program's value.
    pub fn cell(
        &self,
        pair: ProgramNamePair,
        place: usize,
        mapping: &str,
        value: MappedRunValue,
    ) -> Cell {
        interval_cell(&finite(self.values(pair, place, mapping, value)))
    }

    /// Speed of a program under a mapping over that under another, seed by seed.
    pub fn speed(&self, pair: ProgramNamePair, place: usize, mapping: &str, over: &str) -> Cell {
        let of = |mapping: &str| self.values(pair, place, mapping, SECONDS);
        paired_ratio_cell(&of(over), &of(mapping))
    }

    /// Mean over a program's co-runners of its value under a mapping, seed by seed.
    pub fn over_co_runners(&self, program: &str, mapping: &str, value: MappedRunValue) -> Vec<f64> {
        let of = |seed: usize| {
            let each = self.with(program).map(|(pair, place)| {
                let run = &self.both(pair, mapping)[seed];
                value(&run[place])
            });
            let all = finite(each.collect());
            all.iter().sum::<f64>() / all.len() as f64
        };
        finite((0..self.seeds).map(of).collect())
    }
}

/// The values that are finite.
pub(super) fn finite(values: Vec<f64>) -> Vec<f64> {
    values
        .into_iter()
        .filter(|value| value.is_finite())
        .collect()
}

/// Geometric mean of gains, factors by seed, with its interval.
pub(in crate::studies) fn gain_cell(factors: &[f64]) -> Cell {
    let ratio = RatioInterval::from_ratios(factors).map(|ratio| ratio.to_interval());
    ratio.as_ref().map_or_else(|| interval_cell(&[]), percent)
}

/// Geometric mean over pairs of their means over seeds, with the interval over pairs.
pub(in crate::studies) fn mean_gain(
    pairs: &[ProgramNamePair],
    gains: impl Fn(ProgramNamePair) -> Vec<f64>,
) -> Cell {
    let means = pairs
        .iter()
        .filter_map(|pair| geometric_mean(&gains(*pair)));
    gain_cell(&means.collect::<Vec<_>>())
}

fn percent(factor: &ConfidenceInterval) -> Cell {
    Cell::Interval(ConfidenceInterval {
        mean: 100.0 * (factor.mean - 1.0),
        ci95: factor.ci95.map(|half| 100.0 * half),
        n: factor.n,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_the_percentage_above_1() {
        let cell = gain_cell(&[1.1, 1.1]);
        assert!((cell.value().unwrap() - 10.0).abs() < 1e-9);
        assert!(cell.ci95().unwrap() < 1e-6 && cell.n() == Some(2));
        let pairs = [["a", "b"], ["c", "d"]];
        let gains = |pair: ProgramNamePair| vec![if pair[0] == "a" { 2.0 } else { 0.5 }];
        assert!(mean_gain(&pairs, gains).value().unwrap().abs() < 1e-9);
        assert_eq!(gain_cell(&[]).value(), None);
    }
}
