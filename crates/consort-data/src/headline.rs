//! The first table of a study: the figures that its source prints, as they come out here.

use crate::cell::Cell;
use crate::report_table::{ReportColumn, ReportTable, ReportTableError};
use consort_core::stats::ConfidenceInterval;

/// Key of the first table of every study.
pub const HEADLINE: &str = "headline";

/// One row for each figure that the source prints for this experiment, in its words, for example
/// `hrrs over linux, SPEC`. Reference files set published figures next to exactly these rows.
#[derive(Debug)]
pub struct HeadlineTable(ReportTable);

impl HeadlineTable {
    /// A headline without rows.
    ///
    /// # Errors
    /// Those of [`ReportTable::new`]; its own keys are right.
    pub fn new() -> Result<Self, ReportTableError> {
        let columns = vec![
            ReportColumn::plain("value", "Value"),
            ReportColumn::plain("ci95", "95 % interval, ±"),
            ReportColumn::plain("unit", "Unit"),
            ReportColumn::plain("runs", "Runs"),
        ];
        let title = "Headline results";
        ReportTable::new(HEADLINE, title, columns).map(Self)
    }

    /// Adds a figure in this unit (`percent`, `ratio`, `s`, `mpki`).
    ///
    /// # Errors
    /// A key that cannot be one or is taken.
    pub fn add(
        &mut self,
        row: &str,
        unit: &str,
        value: impl Into<Cell>,
    ) -> Result<(), ReportTableError> {
        let value = value.into();
        let absent = |why: &str| Cell::missing(why);
        let half = value.ci95().map(Cell::from);
        let half = half.unwrap_or_else(|| absent("not a mean over several runs"));
        let runs = value.n().map(|n| Cell::from(n as u64));
        let runs = runs.unwrap_or_else(|| absent("not a mean over runs"));
        let shown = match (&value, value.value()) {
            (Cell::Interval(_), Some(mean)) => Cell::from(mean),
            _ => value,
        };
        self.0.push(row, vec![shown, half, unit.into(), runs])
    }

    /// Adds a speedup or another ratio as the percentage by which it is above one.
    ///
    /// # Errors
    /// As for [`HeadlineTable::add`].
    pub fn add_gain(&mut self, row: &str, ratio: impl Into<Cell>) -> Result<(), ReportTableError> {
        self.add(row, "percent", percent_above_one(ratio.into()))
    }

    /// The table.
    pub fn into_table(self) -> ReportTable {
        self.0
    }
}

/// A ratio as the percentage by which it is above one.
pub fn percent_above_one(ratio: Cell) -> Cell {
    match ratio {
        Cell::Count(count) => Cell::Number(100.0 * (count as f64 - 1.0)),
        Cell::Number(value) => Cell::Number(100.0 * (value - 1.0)),
        Cell::Interval(interval) => Cell::Interval(ConfidenceInterval {
            mean: 100.0 * (interval.mean - 1.0),
            ci95: interval.ci95.map(|half| 100.0 * half),
            ..interval
        }),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval() -> ConfidenceInterval {
        ConfidenceInterval::from_values(&[1.1, 1.3]).unwrap()
    }

    #[test]
    fn mean_fills_value_interval_and_runs() {
        let mut headline = HeadlineTable::new().unwrap();
        headline.add("a over b", "ratio", interval()).unwrap();
        let table = headline.into_table();
        let number = |column| table.cell("a over b", column).unwrap().value().unwrap();
        assert!((number("value") - 1.2).abs() < 1e-12);
        assert!((number("ci95") - interval().ci95.unwrap()).abs() < 1e-12);
        assert_eq!(table.cell("a over b", "runs"), Some(&Cell::Count(2)));
        assert_eq!(table.cell("a over b", "unit"), Some(&"ratio".into()));
    }

    #[test]
    fn gain_is_ratio_above_one() {
        let mut headline = HeadlineTable::new().unwrap();
        headline.add_gain("mean", interval()).unwrap();
        headline.add_gain("one run", 0.75).unwrap();
        headline.add_gain("none", Cell::missing("no runs")).unwrap();
        let table = headline.into_table();
        let mean = table.cell("mean", "value").unwrap().value().unwrap();
        assert!((mean - 20.0).abs() < 1e-9);
        assert_eq!(table.cell("one run", "value"), Some(&Cell::Number(-25.0)));
        assert_eq!(table.cell("one run", "ci95").unwrap().value(), None);
        assert_eq!(table.cell("none", "value"), Some(&Cell::missing("no runs")));
    }
}
