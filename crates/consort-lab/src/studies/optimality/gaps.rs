//! Gaps of policies to the best, workload by workload.

use crate::frame::interval_cell;
use crate::study::StudyError;
use consort_data::{
    Axis, Figure, FigurePoint, HeadlineTable, LineChart, Plot, PointSeries, ReportColumn,
    ReportTable,
};

/// Gap up to which a policy counts as the best, percent.
const NEAR_PERCENT: f64 = 1.0;
/// Column of the mean over workloads.
const MEAN: &str = "gap_mean_percent";

/// The gaps of one policy, or of one way to choose, over workloads.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PolicyGaps {
    /// Ground, or number of threads.
    pub group: String,
    /// The policy.
    pub policy: String,
    /// Gap to the best by workload, percent of the best; below 0 where it is better.
    pub gaps_percent: Vec<f64>,
}

impl PolicyGaps {
    fn key(&self) -> String {
        format!("{}/{}", self.group, self.policy)
    }

    /// Mean over workloads.
    pub fn mean_percent(&self) -> f64 {
        consort_core::stats::mean(&self.gaps_percent).unwrap_or(f64::NAN)
    }

    /// The largest gap.
    pub fn worst_percent(&self) -> f64 {
        self.gaps_percent
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }
}

/// Gap to the best of a value of which more is better, percent of the best.
pub(super) fn missing_percent(value: f64, best: f64) -> f64 {
    100.0 * (1.0 - value / best)
}

/// The mean gaps of all these tables.
pub(super) fn headline(tables: &[ReportTable]) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for table in tables {
        for row in table.rows() {
            if let Some(gap) = table.cell(&row.key, MEAN) {
                let key = format!("{}: {}, gap to the best", table.key(), row.key);
                headline.add(&key, "percent", gap.clone())?;
            }
        }
    }
    Ok(headline.into_table())
}

/// A table of rows `GROUP/POLICY`.
pub(super) fn table(
    key: &str,
    title: &str,
    rows: &[PolicyGaps],
) -> Result<ReportTable, StudyError> {
    let columns = vec![
        ReportColumn::with_unit(MEAN, "Mean gap", "%"),
        ReportColumn::with_unit("gap_worst_percent", "Worst gap", "%"),
        ReportColumn::with_unit("gap_least_percent", "Least gap", "%"),
        ReportColumn::with_unit("near_percent", "Gap of at most 1 percent", "% of workloads"),
        ReportColumn::plain("workloads", "Workloads"),
    ];
    let mut table = ReportTable::new(key, title, columns)?;
    for row in rows {
        let gaps = &row.gaps_percent;
        let near = gaps.iter().filter(|gap| **gap <= NEAR_PERCENT).count();
        let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
        let cells = vec![
            interval_cell(gaps),
            row.worst_percent().into(),
            least.into(),
            (100.0 * near as f64 / gaps.len().max(1) as f64).into(),
            (gaps.len() as u64).into(),
        ];
        table.push(&row.key(), cells)?;
    }
    Ok(table)
}

/// The gaps of a group's rows, each row's in ascending order.
pub(super) fn figure(
    key: &str,
    title: &str,
    text: &str,
    runs: usize,
    rows: &[&PolicyGaps],
) -> Result<Figure, StudyError> {
    let lines = LineChart {
        x: Axis::linear("Workloads with at most this gap", Some("%")),
        y: Axis::linear("Gap", Some("%")),
        series: rows.iter().map(|row| sorted(row)).collect(),
    };
    Ok(Figure::new(key, title, text, runs, Plot::Lines(lines))?)
}

fn sorted(row: &PolicyGaps) -> PointSeries {
    let mut gaps = row.gaps_percent.clone();
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let point =
        |(nth, gap): (usize, &f64)| FigurePoint::exact(100.0 * (nth + 1) as f64 / count, *gap);
    PointSeries {
        name: row.policy.clone(),
        points: gaps.iter().enumerate().map(point).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> PolicyGaps {
        PolicyGaps {
            group: "g".to_owned(),
            policy: "p".to_owned(),
            gaps_percent: vec![4.0, -1.0, 0.5],
        }
    }

    #[test]
    fn rows_say_mean_extremes_and_how_many_are_near() {
        let table = table("t", "T", &[row()]).unwrap();
        let value = |column: &str| table.cell("g/p", column).unwrap().value().unwrap();
        assert!((value("gap_mean_percent") - 3.5 / 3.0).abs() < 1e-12);
        assert_eq!(value("gap_worst_percent"), 4.0);
        assert_eq!(value("gap_least_percent"), -1.0);
        assert!((value("near_percent") - 200.0 / 3.0).abs() < 1e-9);
        assert_eq!(missing_percent(3.0, 4.0), 25.0);
    }

    #[test]
    fn a_distribution_rises_to_all_workloads() {
        let series = sorted(&row());
        let ends = (series.points[0], series.points[2]);
        assert_eq!((ends.0.y, ends.1.y, ends.1.x), (-1.0, 4.0, 100.0));
    }
}
