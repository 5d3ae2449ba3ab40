//! Bar charts of schedulers and programs.

use super::entrants::{ENTRANTS, MAIN};
use super::grid::Grid;
use crate::study::StudyError;
use crate::study::bar;
use consort_core::ProgramId;
use consort_report::{Axis, BarSeries, Bars, Cell, Figure, Plot};

/// Names of a chart and of its values.
#[derive(Clone, Copy)]
pub(in crate::studies) struct Chart<'a> {
    pub key: &'a str,
    pub title: &'a str,
    pub text: &'a str,
    pub value: &'a str,
    pub unit: Option<&'a str>,
    pub baseline: f64,
}

impl Chart<'_> {
    /// Groups of bars with the series that are given.
    pub fn bars(
        &self,
        (category, groups): (&str, Vec<String>),
        series: Vec<BarSeries>,
        runs: usize,
    ) -> Result<Figure, StudyError> {
        let bars = Bars {
            category: category.to_owned(),
            value: Axis::linear(self.value, self.unit),
            baseline: self.baseline,
            groups,
            series,
        };
        Ok(Figure::new(
            self.key,
            self.title,
            self.text,
            runs,
            Plot::Bars(bars),
        )?)
    }

    /// A group for each program, a bar for each of the main schedulers.
    pub fn by_program(
        &self,
        grid: &Grid,
        cell: impl Fn(usize, ProgramId) -> Cell,
    ) -> Result<Figure, StudyError> {
        let series = |entrant: usize| BarSeries {
            name: ENTRANTS[entrant].short().to_owned(),
            bars: grid
                .suite()
                .ids()
                .map(|id| bar(&cell(entrant, id)))
                .collect(),
        };
        self.bars(
            ("Program", grid.names()),
            MAIN.map(series).collect(),
            grid.runs(),
        )
    }

    /// Named groups, a bar for each of the main schedulers.
    pub fn by_group(
        &self,
        grid: &Grid,
        groups: &[&str],
        cell: impl Fn(usize, usize) -> Cell,
    ) -> Result<Figure, StudyError> {
        let series = |entrant: usize| BarSeries {
            name: ENTRANTS[entrant].short().to_owned(),
            bars: (0..groups.len())
                .map(|group| bar(&cell(entrant, group)))
                .collect(),
        };
        let names = groups.iter().map(|group| (*group).to_owned()).collect();
        self.bars(
            ("Mean over", names),
            MAIN.map(series).collect(),
            grid.runs(),
        )
    }
}
