//! What the studies of single programs share: machines, cells, charts.

use crate::report::{Axis, Bar, BarSeries, Bars, Cell, Figure, FigureError, Plot};
use crate::studies::alone::{Repeated, Told};

/// One NUMA node of the paper's first machine.
pub(in crate::studies) const BULLDOZER: &str = "bulldozer-6282se";
/// One processor of the paper's second machine.
pub(in crate::studies) const POWER7: &str = "power7";

/// A machine's name in figures, as the paper calls it.
pub(in crate::studies) fn short(machine: &str) -> &str {
    match machine {
        BULLDOZER => "Bulldozer",
        POWER7 => "POWER7",
        other => other,
    }
}

/// What FPU usage means on each of the two.
pub(in crate::studies) const FPU_USAGE: [(&str, &str); 2] = [
    (BULLDOZER, "1 - empty FPU cycles/cycles"),
    (POWER7, "FP operations/cycles"),
];

/// A cell of a table.
pub(in crate::studies) fn cell(runs: &Repeated, of: fn(&Told) -> f64) -> Cell {
    let interval = runs.over(of);
    interval.map_or_else(|| Cell::missing("nothing was counted"), Cell::from)
}

/// A bar of a figure.
pub(in crate::studies) fn bar(runs: &Repeated, of: fn(&Told) -> f64) -> Option<Bar> {
    runs.over(of).map(|interval| Bar {
        value: interval.mean,
        ci95: interval.ci95,
    })
}

/// Groups of bars from 0.
pub(in crate::studies) struct Chart {
    /// Key of the figure.
    pub key: String,
    /// Its title.
    pub title: String,
    /// What to see in it.
    pub text: String,
    /// Title of the groups.
    pub category: &'static str,
    /// Axis of the values.
    pub value: Axis,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// Names and bars.
    pub series: Vec<(&'static str, Vec<Option<Bar>>)>,
}

impl Chart {
    /// The figure; `runs` is what each value stands on.
    ///
    /// # Errors
    /// A series without a bar for each group.
    pub fn figure(self, runs: usize) -> Result<Figure, FigureError> {
        let series = self.series.into_iter().map(|(name, bars)| BarSeries {
            name: name.to_owned(),
            bars,
        });
        let bars = Bars {
            category: self.category.to_owned(),
            value: self.value,
            baseline: 0.0,
            groups: self.groups,
            series: series.collect(),
        };
        Figure::new(&self.key, &self.title, &self.text, runs, Plot::Bars(bars))
    }
}
