//! The two readings of the long-term sum of tcs against each other.

use crate::frame::{CellQuery, Frame, IntervalBasis, mean_ratio_cell};
use crate::study::file::TableSpec;
use crate::study::{Frames, StudyError};
use consort_data::{Cell, ReportTable};

/// The lowest long-term sum gets the large core, as in the source's worked example.
const LAGGING: &str = "tcs:long-term=lagging";
/// The highest long-term sum gets it, as in the source's rule.
const CRITICAL: &str = "tcs:long-term=critical";
/// The studies whose runs are compared.
const STUDIES: [&str; 3] = ["A12", "A13", "A14"];

/// Table `readings`: rows are the studies, and `all`; columns `lagging_over_critical` (geometric
/// mean over workloads, intervals over workloads), `lagging_better` and `critical_better` (in how
/// many workloads), `workloads`.
pub(in crate::studies) fn readings(
    spec: &TableSpec,
    frames: &Frames,
) -> Result<ReportTable, StudyError> {
    let studies = STUDIES.map(|study| (study, cells(&over(frames, study))));
    spec.fill_rows(studies.into_iter().chain([("all", cells(&all(frames)))]))
}

/// Note on the better reading over all workloads.
pub(in crate::studies) fn verdict(frames: &Frames) -> Vec<String> {
    let all = all(frames);
    vec![reported(&cells(&all)[0], all.len())]
}

fn all(frames: &Frames) -> Vec<f64> {
    STUDIES
        .iter()
        .flat_map(|study| over(frames, study))
        .collect()
}

/// Speed of lagging over critical in each workload of a study: geometric means over runs.
fn over(frames: &Frames, study: &str) -> Vec<f64> {
    let what = CellQuery {
        measure: "stp",
        policy: LAGGING,
        over: Some(CRITICAL),
        ..CellQuery::default()
    };
    let of = |frame: &Frame| -> Vec<f64> {
        let cases = frame.group_by_label("case", IntervalBasis::Cases, |_| true);
        cases
            .iter()
            .filter_map(|case| frame.cell(&what, case).value())
            .collect()
    };
    frames.get(study).map_or_else(Vec::new, |frame| of(frame))
}

fn cells(values: &[f64]) -> Vec<Cell> {
    let count = |is: &dyn Fn(f64) -> bool| values.iter().filter(|&&v| is(v)).count() as u64;
    vec![
        mean_ratio_cell(values),
        count(&|v| v > 1.0).into(),
        count(&|v| v < 1.0).into(),
        (values.len() as u64).into(),
    ]
}

fn reported(whole: &Cell, workloads: usize) -> String {
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
        assert!(reported(&clear[0], 3).ends_with("lagging does better, beyond the interval."));
        let open = cells(&[0.9, 1.05, 1.0]);
        assert_eq!((open[1].value(), open[2].value()), (Some(1.0), Some(1.0)));
        let text = reported(&open[0], 3);
        assert!(
            text.contains("critical does better, within the interval"),
            "{text}"
        );
    }
}
