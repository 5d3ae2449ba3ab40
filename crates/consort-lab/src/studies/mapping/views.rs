//! Cells, tables and bars from the runs of programs under mappings.

use super::measures::{Measure, SECONDS, Value};
use super::plan::Pair;
use super::sweep::Runs;
use crate::frame::interval;
use crate::studies::symbiosis::cells::ratio;
use crate::study::StudyError;
use crate::study::bar;
use consort_report::{Axis, BarSeries, Bars, Cell, Column, Figure, Plot};

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

impl Measure {
    /// Column of the measure.
    pub fn column(&self) -> Column {
        match self.unit {
            Some(unit) => Column::with_unit(self.key, self.title, unit),
            None => Column::plain(self.key, self.title),
        }
    }

    /// Axis of the measure.
    pub fn axis(&self) -> Axis {
        Axis::linear(self.title, self.unit)
    }
}

/// Texts of a figure around its bars.
#[derive(Clone, Copy)]
pub(in crate::studies) struct Draft<'a> {
    pub key: &'a str,
    pub title: &'a str,
    pub text: &'a str,
    /// Title of the axis of groups.
    pub category: &'a str,
}

/// A group of bars for each name; series are names with a cell for each group.
pub(in crate::studies) fn bars(
    draft: Draft<'_>,
    runs: usize,
    (value, baseline): (Axis, f64),
    groups: Vec<String>,
    series: &[(String, Vec<Cell>)],
) -> Result<Figure, StudyError> {
    let one = |(name, cells): &(String, Vec<Cell>)| BarSeries {
        name: name.clone(),
        bars: cells.iter().map(bar).collect(),
    };
    let plot = Plot::Bars(Bars {
        category: draft.category.to_owned(),
        value,
        baseline,
        groups,
        series: series.iter().map(one).collect(),
    });
    Ok(Figure::new(draft.key, draft.title, draft.text, runs, plot)?)
}
