//! X5: gaps between policies and exact search.
//!
//! [`searches`]: policies run on small machines against every placement ([`placements`], up to
//! symmetry); for one large core also against the best schedule that shares it by time.
//! [`groups`]: the matching of `symbiotic` against all pairings, by its own model and by the measured
//! slowdowns, and its search for groups of four, for which no exact method is fast. [`mappings`]:
//! pairs of multithreaded programs under policies and under every static mapping. [`coschedules`]:
//! rounds of co-schedulers against the best of all rounds, with all slots simulated ([`slots`]).
//!
//! Keys. Tables `throughput` (rows `GROUND/POLICY`, for example `bulldozer/linux`; grounds are
//! `bulldozer`, `power8`, `core2`, `acmp`; in addition to the policies `any placement` and `worst
//! placement`), `pairing` (rows `THREADS/own model`, `THREADS/truth`, `THREADS/any pairing`),
//! `fours` (rows `THREADS in fours/search`, `THREADS in fours/any grouping`),
//! `speed` and `shared` (rows `acmp/POLICY`, in `shared` also `acmp/best placement`), `mappings`
//! (rows `core2-pairs/POLICY`, in addition to the policies `any mapping` and `worst mapping`),
//! `coschedules` (rows `energy-delay/SCHEDULER` and `throughput/SCHEDULER`). All have the
//! columns `gap_mean_percent`, `gap_worst_percent`, `gap_least_percent`, `near_percent`,
//! `workloads`. Figures `throughput-GROUND`, `pairing`, `shared`, `mappings`,
//! `coschedules-energy-delay`, `coschedules-throughput`.
//!
//! Pitfall: placements and mappings are static; a policy that moves threads may be better than all
//! of them.

mod coschedules;
mod groups;
mod mappings;
mod placements;
mod searches;
mod slots;

use crate::frame::interval_cell;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::mean;
use consort_data::{
    Axis, Figure, FigurePoint, HeadlineTable, LineChart, Plot, PointSeries, ReportColumn,
    ReportTable,
};
use consort_experiment::ExperimentContext;

/// Runs of each placement and policy, at the quick and the full scale.
const RUNS: [usize; 2] = [1, 3];
/// Gap up to which a policy counts as the best, percent.
const NEAR_PERCENT: f64 = 1.0;
/// Column of the mean over workloads.
const MEAN: &str = "gap_mean_percent";

/// Runs all searches.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    _: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let mut output = StudyOutput {
        runs: context.by_scale(RUNS[0], RUNS[1]),
        ..StudyOutput::default()
    };
    searches::add_placements(context, &mut output)?;
    groups::add_pairs(context, &mut output)?;
    groups::add_fours(context, &mut output)?;
    mappings::add_mappings(context, &mut output)?;
    coschedules::add_coschedules(context, &mut output)?;
    // The headline repeats the means of all tables, so it is made last and put first.
    let mut headline = HeadlineTable::new()?;
    for table in &output.tables {
        for row in table.rows() {
            if let Some(gap) = table.cell(&row.key, MEAN) {
                let key = format!("{}: {}, gap to the best", table.key(), row.key);
                headline.add(&key, "percent", gap.clone())?;
            }
        }
    }
    output.tables.insert(0, headline.into_table());
    Ok(output)
}

/// The gaps of one policy, or of one way to choose, over workloads.
#[derive(Clone, Debug, PartialEq)]
struct PolicyGaps {
    /// Ground, or number of threads.
    group: String,
    policy: String,
    /// Gap to the best by workload, percent of the best; below 0 if it is better.
    gaps_percent: Vec<f64>,
}

impl PolicyGaps {
    fn new(group: &str, policy: &str, gaps_percent: impl IntoIterator<Item = f64>) -> Self {
        Self {
            group: group.to_owned(),
            policy: policy.to_owned(),
            gaps_percent: gaps_percent.into_iter().collect(),
        }
    }

    /// Mean over workloads.
    fn mean_percent(&self) -> f64 {
        mean(&self.gaps_percent).unwrap_or(f64::NAN)
    }

    fn worst_percent(&self) -> f64 {
        let gaps = self.gaps_percent.iter().copied();
        gaps.fold(f64::NEG_INFINITY, f64::max)
    }

    /// The gaps in ascending order.
    fn sorted_series(&self) -> PointSeries {
        let mut gaps = self.gaps_percent.clone();
        gaps.sort_by(f64::total_cmp);
        let count = gaps.len() as f64;
        let numbered = gaps.iter().enumerate();
        let points =
            numbered.map(|(n, gap)| FigurePoint::exact(100.0 * (n + 1) as f64 / count, *gap));
        PointSeries {
            name: self.policy.clone(),
            points: points.collect(),
        }
    }
}

/// Gap to the best of a value whose increase is better, percent of the best.
fn missing_percent(value: f64, best: f64) -> f64 {
    100.0 * (1.0 - value / best)
}

/// Means and worst gaps of some rows.
fn list_gaps<'a>(rows: impl IntoIterator<Item = &'a PolicyGaps>) -> String {
    join_texts(rows.into_iter().map(|row| {
        format!(
            "{} {:.2} and {:.2} %",
            row.policy,
            row.mean_percent(),
            row.worst_percent()
        )
    }))
}

fn join_texts(texts: impl IntoIterator<Item = String>) -> String {
    let texts: Vec<String> = texts.into_iter().collect();
    if texts.is_empty() {
        return "none".to_owned();
    }
    texts.join(", ")
}

/// A table of rows `GROUP/POLICY`.
fn gap_table(key: &str, title: &str, rows: &[PolicyGaps]) -> Result<ReportTable, StudyError> {
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
        table.push(&format!("{}/{}", row.group, row.policy), cells)?;
    }
    Ok(table)
}

/// The distributions of gaps, one line per row. Worst placements and mappings are left out, since
/// they flatten the others.
fn gap_figure<'a>(
    key: &str,
    title: &str,
    text: &str,
    runs: usize,
    rows: impl IntoIterator<Item = &'a PolicyGaps>,
) -> Result<Figure, StudyError> {
    let shown = rows
        .into_iter()
        .filter(|row| !row.policy.starts_with("worst "));
    let lines = LineChart {
        x: Axis::linear("Workloads with at most this gap", Some("%")),
        y: Axis::linear("Gap", Some("%")),
        series: shown.map(PolicyGaps::sorted_series).collect(),
    };
    Ok(Figure::new(key, title, text, runs, Plot::Lines(lines))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_shows_mean_extremes_and_near_gaps() {
        let rows = [PolicyGaps::new("g", "p", [4.0, -1.0, 0.5])];
        let table = gap_table("t", "T", &rows).unwrap();
        let value = |column: &str| table.cell("g/p", column).unwrap().value().unwrap();
        assert!((value("gap_mean_percent") - 3.5 / 3.0).abs() < 1e-12);
        assert_eq!(value("gap_worst_percent"), 4.0);
        assert_eq!(value("gap_least_percent"), -1.0);
        assert!((value("near_percent") - 200.0 / 3.0).abs() < 1e-9);
        assert_eq!(missing_percent(3.0, 4.0), 25.0);
        let series = rows[0].sorted_series();
        let ends = (series.points[0], series.points[2]);
        assert_eq!((ends.0.y, ends.1.y, ends.1.x), (-1.0, 4.0, 100.0));
    }
}
