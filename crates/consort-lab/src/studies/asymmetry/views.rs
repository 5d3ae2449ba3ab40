//! Tables and notes on the frames of asymmetric chips that study files cannot state.

use super::super::ratio;
use super::alone::{LARGE, SMALL};
use crate::frame::{IntervalBasis, mean_ratio_cell};
use crate::study::file::TableSpec;
use crate::study::{Frames, StudyError};
use consort_data::{Cell, ReportTable};
use consort_sim::contention::CpiStack;

/// The highest long-term sum gets the large core at once, as in the source's rule and in the caption
/// of its figure 7.2.
const USUAL: &str = "tcs:long-term=critical";
/// Other readings of the source: the policy, and the names of that reading and of the usual one.
const READINGS: [(&str, [&str; 2]); 2] = [
    ("tcs:long-term=lagging", ["lagging", "critical"]),
    (
        "tcs:immediate=false",
        ["a decision at the end of the quantum", "one at once"],
    ),
];
/// The studies whose runs are compared.
const STUDIES: [&str; 3] = ["A12", "A13", "A14"];

/// Causes that are no part of a thread's cycles alone: no core is shared, no thread waits for locks.
const NOT_ALONE: [&str; 3] = ["window", "dispatch", "lock"];

/// A table of two readings of the source, the policies of its first column: rows are the studies,
/// and `all`; columns are the speed of the first over the second (geometric mean over workloads,
/// intervals over workloads), in how many workloads either is better, and the workloads.
pub(in crate::studies) fn readings(
    spec: &TableSpec,
    frames: &Frames,
) -> Result<ReportTable, StudyError> {
    let first = spec.columns.first();
    let policy = first.and_then(|column| column.policy.as_deref());
    let policy = policy.unwrap_or_default();
    let each = STUDIES.map(|study| (study, speed_ratios(frames, policy, &[study])));
    let rows = each
        .into_iter()
        .chain([("all", speed_ratios(frames, policy, &STUDIES))]);
    spec.fill_rows(rows.map(|(key, ratios)| (key, cells(&ratios))))
}

/// Notes on the better readings over all workloads.
pub(in crate::studies) fn note_verdict(frames: &Frames) -> Vec<String> {
    let verdict = |(policy, names)| {
        let all = speed_ratios(frames, policy, &STUDIES);
        verdict_text(&cells(&all)[0], all.len(), names)
    };
    READINGS.map(verdict).into()
}

/// Speed of a policy over the usual one in each workload of some studies: geometric means over runs.
fn speed_ratios(frames: &Frames, policy: &str, studies: &[&str]) -> Vec<f64> {
    let mut ratios = Vec::new();
    for frame in studies.iter().filter_map(|study| frames.get(study)) {
        for case in frame.group_by_label("case", IntervalBasis::Cases, |_| true) {
            ratios.extend(frame.cell(&ratio("stp", policy, USUAL), &case).value());
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

fn verdict_text(whole: &Cell, workloads: usize, [other, usual]: [&str; 2]) -> String {
    let (value, half) = (whole.value().unwrap_or(1.0), whole.ci95().unwrap_or(0.0));
    let better = if value > 1.0 { other } else { usual };
    let beyond = if (value - 1.0).abs() > half {
        "beyond the interval"
    } else {
        "within the interval, so that neither is better"
    };
    format!(
        "Over the {workloads} workloads of A12, A13 and A14 together tcs is {} times as fast with \
         {other} as with {usual}: {better} does better, {beyond}.",
        whole.text()
    )
}

/// Note on the most that any schedule of mixes gains over the mean of all assignments: with program
/// j on the large core the weighted speedup is `1 + Σ 1/r` over the others, r a program's speed on
/// the large core over that on a small one, and every schedule is a mean of these.
pub(in crate::studies) fn note_ceiling(frames: &Frames) -> Vec<String> {
    let (Some(mixes), Some(alone)) = (frames.get("mixes"), frames.get("alone")) else {
        return Vec::new();
    };
    let small_share = |program: &String| {
        let case = alone.cases.iter().position(|case| case.key == *program)?;
        let ratio = alone.run_values(case, 0, "large_over_small").first()?;
        Some(1.0 / ratio)
    };
    let mut gains = Vec::new();
    for case in &mixes.cases {
        let shares: Vec<f64> = case.programs.iter().filter_map(small_share).collect();
        gains.extend(best_over_mean(&shares));
    }
    vec![format!(
        "Ceiling: with program j on the large core the weighted speedup is 1 + Σ 1/r over the other \
         programs, r their speed on the large core over that on a small one, if nothing but cores is \
         shared; every schedule is a mean of these. The best j is {} times the mean of all j, which \
         is pinned, so that no schedule gains more over it or over turns of equal length.",
        mean_ratio_cell(&gains).text()
    )]
}

/// The highest weighted speedup of all assignments over their mean, for programs that run on a small
/// core at these shares of their speed on the large one.
fn best_over_mean(shares: &[f64]) -> Option<f64> {
    let all: f64 = shares.iter().sum();
    let least = shares.iter().copied().reduce(f64::min)?;
    let n = shares.len() as f64;
    Some((1.0 + all - least) / (1.0 + all - all / n))
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
    fn best_assignment_of_a_mix_is_by_hand() {
        // 1 + 1/2 with the first on the large core, 1 + 1/4 with the second: 1.5 over 1.375.
        let gain = best_over_mean(&[0.25, 0.5]).unwrap();
        assert!((gain - 1.5 / 1.375).abs() < 1e-12, "{gain}");
        assert_eq!(best_over_mean(&[0.5; 4]), Some(1.0));
    }

    #[test]
    fn better_reading_is_named_with_interval() {
        let names = READINGS[0].1;
        let clear = cells(&[1.10, 1.11, 1.12]);
        assert_eq!((clear[1].value(), clear[2].value()), (Some(3.0), Some(0.0)));
        assert!(
            verdict_text(&clear[0], 3, names)
                .ends_with("lagging does better, beyond the interval.")
        );
        let open = cells(&[0.9, 1.05, 1.0]);
        assert_eq!((open[1].value(), open[2].value()), (Some(1.0), Some(1.0)));
        let text = verdict_text(&open[0], 3, names);
        assert!(
            text.contains("critical does better, within the interval"),
            "{text}"
        );
    }
}
