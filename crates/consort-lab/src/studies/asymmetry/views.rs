//! Tables and notes on the frames of asymmetric chips that study files cannot state.

use super::super::ratio;
use super::alone::{LARGE, SMALL};
use crate::frame::{IntervalBasis, mean_ratio_cell};
use crate::study::file::TableSpec;
use crate::study::{Frames, StudyError};
use consort_data::{Cell, ReportTable};
use consort_sim::contention::CpiStack;

/// The lowest long-term sum gets the large core, as in the source's worked example.
const LAGGING: &str = "tcs:long-term=lagging";
/// The highest long-term sum gets it, as in the source's rule.
const CRITICAL: &str = "tcs:long-term=critical";
/// The studies whose runs are compared.
const STUDIES: [&str; 3] = ["A12", "A13", "A14"];

/// Causes that are no part of a thread's cycles alone: no core is shared, no thread waits for locks.
const NOT_ALONE: [&str; 3] = ["window", "dispatch", "lock"];

/// Table `readings`: rows are the studies, and `all`; columns `lagging_over_critical` (geometric
/// mean over workloads, intervals over workloads), `lagging_better` and `critical_better` (in how
/// many workloads), `workloads`.
pub(in crate::studies) fn readings(
    spec: &TableSpec,
    frames: &Frames,
) -> Result<ReportTable, StudyError> {
    let each = STUDIES.map(|study| (study, speed_ratios(frames, &[study])));
    let rows = each
        .into_iter()
        .chain([("all", speed_ratios(frames, &STUDIES))]);
    spec.fill_rows(rows.map(|(key, ratios)| (key, cells(&ratios))))
}

/// Note on the better reading over all workloads.
pub(in crate::studies) fn note_verdict(frames: &Frames) -> Vec<String> {
    let all = speed_ratios(frames, &STUDIES);
    vec![verdict_text(&cells(&all)[0], all.len())]
}

/// Speed of lagging over critical in each workload of some studies: geometric means over runs.
fn speed_ratios(frames: &Frames, studies: &[&str]) -> Vec<f64> {
    let mut ratios = Vec::new();
    for frame in studies.iter().filter_map(|study| frames.get(study)) {
        for case in frame.group_by_label("case", IntervalBasis::Cases, |_| true) {
            ratios.extend(frame.cell(&ratio("stp", LAGGING, CRITICAL), &case).value());
        }
    }
    ratios
}

fn cells(values: &[f64]) -> Vec<Cell> {
    let better = values.iter().filter(|value| **value > 1.0).count();
    let worse = values.iter().filter(|value| **value < 1.0).count();
    vec![
        mean_ratio_cell(values),
        (better as u64).into(),
        (worse as u64).into(),
        (values.len() as u64).into(),
    ]
}

fn verdict_text(whole: &Cell, workloads: usize) -> String {
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

/// Notes on the cycles that the large core saves the programs with the highest and the lowest
/// ratio, by the largest causes.
pub(in crate::studies) fn note_saved_cycles(frames: &Frames) -> Vec<String> {
    let Some(frame) = frames.get("programs") else {
        return Vec::new();
    };
    let groups = frame.group_by_label("case", IntervalBasis::Cases, |_| true);
    let ends = [0, frame.cases.len().saturating_sub(1)].map(|case| {
        let mean_cpi = |policy: usize, cause: &str| {
            let values = frame.run_values(case, policy, &format!("cpi_{cause}"));
            values.iter().sum::<f64>() / values.len() as f64
        };
        let mut saved = Vec::new();
        for name in CpiStack::NAMES {
            if !NOT_ALONE.contains(&name) {
                saved.push((name, mean_cpi(1, name) - mean_cpi(0, name)));
            }
        }
        saved.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let words = saved.iter().take(3);
        let words = words.map(|(name, cycles)| format!("{name} {cycles:.2}"));
        let ratio = frame.cell(&ratio("ipc", LARGE, SMALL), &groups[case]);
        format!(
            "{} ({}): {}.",
            groups[case].key,
            ratio.text(),
            words.collect::<Vec<_>>().join(", ")
        )
    });
    vec![format!(
        "Cycles per instruction that the large core saves, by cause. {}",
        ends.join(" ")
    )]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_reading_is_named_with_interval() {
        let clear = cells(&[1.10, 1.11, 1.12]);
        assert_eq!((clear[1].value(), clear[2].value()), (Some(3.0), Some(0.0)));
        assert!(verdict_text(&clear[0], 3).ends_with("lagging does better, beyond the interval."));
        let open = cells(&[0.9, 1.05, 1.0]);
        assert_eq!((open[1].value(), open[2].value()), (Some(1.0), Some(1.0)));
        let text = verdict_text(&open[0], 3);
        assert!(
            text.contains("critical does better, within the interval"),
            "{text}"
        );
    }
}
