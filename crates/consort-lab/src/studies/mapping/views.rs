//! Values and cells from the runs of programs under mappings.

use super::measures::{SECONDS, Value};
use super::plan::Pair;
use super::sweep::Runs;
use crate::frame::interval;
use crate::studies::symbiosis::cells::ratio;
use consort_report::Cell;

impl Runs {
    /// A value of the program at one place of a pair under a mapping, seed by seed.
    pub fn values(&self, pair: Pair, place: usize, mapping: &str, value: Value) -> Vec<f64> {
        let runs = self.both(pair, mapping).iter();
        runs.map(|both| value(&both[place])).collect()
    }

    /// Mean over seeds of a program's value.
    pub fn cell(&self, pair: Pair, place: usize, mapping: &str, value: Value) -> Cell {
        interval(&finite(self.values(pair, place, mapping, value)))
    }

    /// Speed of a program under a mapping over that under another, seed by seed.
    pub fn speed(&self, pair: Pair, place: usize, mapping: &str, over: &str) -> Cell {
        let of = |mapping: &str| self.values(pair, place, mapping, SECONDS);
        ratio(&of(over), &of(mapping))
    }

    /// Mean over a program's co-runners of its value under a mapping, seed by seed.
    pub fn over_co_runners(&self, program: &str, mapping: &str, value: Value) -> Vec<f64> {
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
