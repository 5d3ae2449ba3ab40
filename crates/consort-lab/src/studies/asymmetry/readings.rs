//! The two readings of the long-term sum of tcs against each other.

use super::compared::STP;
use super::grid::Grid;
use crate::report::{Cell, Column, Table};
use crate::studies::symbiosis::cells::ratios;
use crate::study::StudyError;

/// The lowest long-term sum gets the large core, as in the source's worked example.
pub(in crate::studies) const LAGGING: &str = "tcs:long-term=lagging";
/// The highest long-term sum gets it, as in the source's rule.
pub(in crate::studies) const CRITICAL: &str = "tcs:long-term=critical";

/// Table `readings`: rows are the studies, and `all`; columns `lagging_over_critical` (geometric
/// mean over workloads, intervals over workloads), `lagging_better` and `critical_better` (in how
/// many workloads), `workloads`. And what comes of it.
pub(in crate::studies) fn table(grids: &[(&str, &Grid)]) -> Result<(Table, String), StudyError> {
    let columns = vec![
        Column::plain("lagging_over_critical", "Speed, lagging over critical"),
        Column::plain("lagging_better", "Workloads in which lagging is faster"),
        Column::plain("critical_better", "Workloads in which critical is faster"),
        Column::plain("workloads", "Workloads"),
    ];
    let title = "The two readings of the long-term sum of tcs";
    let mut table = Table::new("readings", title, columns)?;
    let mut all = Vec::new();
    for (study, grid) in grids {
        let of_study = over(grid);
        table.push(study, cells(&of_study))?;
        all.extend(of_study);
    }
    let whole = cells(&all);
    let verdict = verdict(&whole[0], all.len());
    table.push("all", whole)?;
    Ok((table, verdict))
}

/// Speed of lagging over critical in each workload: geometric means over runs.
fn over(grid: &Grid) -> Vec<f64> {
    let both = grid.policy(LAGGING).zip(grid.policy(CRITICAL));
    let ratio = |case: usize| {
        let (lagging, critical) = both?;
        grid.ratio(case, lagging, critical, STP).value()
    };
    (0..grid.keys.len()).filter_map(ratio).collect()
}

fn cells(values: &[f64]) -> Vec<Cell> {
    let count = |is: &dyn Fn(f64) -> bool| values.iter().filter(|&&v| is(v)).count() as u64;
    vec![
        ratios(values),
        count(&|v| v > 1.0).into(),
        count(&|v| v < 1.0).into(),
        (values.len() as u64).into(),
    ]
}

fn verdict(whole: &Cell, workloads: usize) -> String {
    let (value, half) = (whole.value().unwrap_or(1.0), whole.ci95().unwrap_or(0.0));
    let better = if value > 1.0 { "lagging" } else { "critical" };
    let beyond = if (value - 1.0).abs() > half {
        "beyond the interval"
    } else {
        "within the interval, so that neither is better"
    };
    format!(
        "Over the {workloads} workloads of A12, A13 and A14 together tcs is {} times as fast by the \
         reading lagging as by critical: {better} does better, {beyond}.",
        whole.text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_reading_is_named_with_its_interval() {
        let clear = cells(&[1.10, 1.11, 1.12]);
        assert_eq!((clear[1].value(), clear[2].value()), (Some(3.0), Some(0.0)));
        assert!(verdict(&clear[0], 3).ends_with("lagging does better, beyond the interval."));
        let open = cells(&[0.9, 1.05, 1.0]);
        assert_eq!((open[1].value(), open[2].value()), (Some(1.0), Some(1.0)));
        let text = verdict(&open[0], 3);
        assert!(
            text.contains("critical does better, within the interval"),
            "{text}"
        );
    }
}
