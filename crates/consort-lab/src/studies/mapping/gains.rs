//! Gains over `os` as cells, in percent.

use super::plan::Pair;
use crate::frame::interval;
use consort_core::stats::{Interval, RatioInterval, geometric_mean};
use consort_report::Cell;

/// Geometric mean of gains, factors by seed, with its interval.
pub(in crate::studies) fn gain_cell(factors: &[f64]) -> Cell {
    let ratio = RatioInterval::of(factors).map(|ratio| ratio.symmetric());
    ratio.as_ref().map_or_else(|| interval(&[]), percent)
}

/// Geometric mean over pairs of their means over seeds, with the interval over pairs.
pub(in crate::studies) fn mean_gain(pairs: &[Pair], gains: impl Fn(Pair) -> Vec<f64>) -> Cell {
    let means = pairs
        .iter()
        .filter_map(|pair| geometric_mean(&gains(*pair)));
    gain_cell(&means.collect::<Vec<_>>())
}

fn percent(factor: &Interval) -> Cell {
    Cell::Interval(Interval {
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
        let gains = |pair: Pair| vec![if pair[0] == "a" { 2.0 } else { 0.5 }];
        assert!(mean_gain(&pairs, gains).value().unwrap().abs() < 1e-9);
        assert_eq!(gain_cell(&[]).value(), None);
    }
}
