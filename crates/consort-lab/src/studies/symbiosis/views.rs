//! Tables and notes on the frames of symbiotic scheduling that study files cannot state.

use super::super::ratio;
use super::QUANTUM;
use crate::frame::{
    CaseGroup, CellQuery, Frame, IntervalBasis, interval_cell, number_or_missing, paired_ratio_cell,
};
use crate::study::file::TableSpec;
use crate::study::{Frames, StudyError};
use consort_core::stats::mean;
use consort_data::{Cell, ReportColumn, ReportTable};
use consort_sim::contention::CpiStack;
use std::sync::Arc;

/// Decision times that are charged without being measured, µs.
const CHARGED_US: [f64; 2] = [100.0, 1000.0];
/// Changes of policy whose effect on cycles is named, from the first to the second.
const CHANGES: [[&str; 2]; 4] = [
    ["random", "linux"],
    ["random", "symbiotic"],
    ["linux", "symbiotic"],
    ["symbiotic", "oracle"],
];

fn require<'a>(frames: &'a Frames, name: &str) -> Result<&'a Arc<Frame>, StudyError> {
    let frame = frames.get(name);
    frame.ok_or_else(|| StudyError::part(name, "is missing"))
}

/// Rest of a throughput when deciding takes this long in every quantum.
pub(super) fn charged(stp: f64, decision_us: f64) -> f64 {
    stp * (1.0 - decision_us / quantum_us()).max(0.0)
}

fn quantum_us() -> f64 {
    QUANTUM.as_nanos() as f64 / 1e3
}

/// The time per quantum that costs the whole gain; `None` without one.
fn break_even_us(ratio: f64) -> Option<f64> {
    (ratio > 1.0).then(|| (1.0 - 1.0 / ratio) * quantum_us())
}

/// Table `limits`: throughput over linux, and how long deciding may take, by number of cores and
/// over all workloads.
pub(in crate::studies) fn limits(
    spec: &TableSpec,
    frames: &Frames,
) -> Result<ReportTable, StudyError> {
    let frame = require(frames, "near")?;
    let mut groups = frame.group_by_label("cores", IntervalBasis::Cases, |_| true);
    groups.push(frame.group_all("all", IntervalBasis::Cases, |_| true));
    let mut rows = Vec::new();
    for group in &groups {
        // The oracle's time would show how long the simulation takes to solve pairs.
        for policy in frame.policies.iter().filter(|policy| *policy != "oracle") {
            let free = frame.cell(&ratio("stp", policy, "linux"), group);
            let limit =
                number_or_missing(free.value().and_then(break_even_us), "no gain over linux");
            let at = CHARGED_US.map(|us| {
                // Linux decides in the kernel.
                let us = if policy == "linux" { 0.0 } else { us };
                number_or_missing(free.value().map(|free| charged(free, us)), "no runs")
            });
            let [at_100, at_1000] = at;
            let key = format!("{}/{policy}", group.key);
            rows.push((key, vec![free, limit, at_100, at_1000]));
        }
    }
    spec.fill_rows(rows)
}

/// Note on the time that deciding may take, over all workloads.
pub(in crate::studies) fn limit_note(frames: &Frames) -> Vec<String> {
    let Some(frame) = frames.get("near") else {
        return Vec::new();
    };
    let all = frame.group_all("all", IntervalBasis::Cases, |_| true);
    let gain = frame.cell(&ratio("stp", "symbiotic", "linux"), &all);
    let limit = gain.value().and_then(break_even_us);
    let limit = limit.map_or_else(
        || "there is no gain that deciding could cost".to_owned(),
        |us| format!("deciding may take {us:.0} µs of a quantum before nothing is left of it"),
    );
    vec![format!(
        "Over all workloads symbiotic has {} times linux's throughput when deciding takes no time: \
         {limit}.",
        gain.text()
    )]
}

/// Notes on how cycles per instruction change from one policy to another in the experiment
/// `near`, over all workloads.
pub(in crate::studies) fn changes(frames: &Frames) -> Vec<String> {
    let Some(frame) = frames.get("near") else {
        return Vec::new();
    };
    let notes = CHANGES.iter().filter_map(|both| change(frame, *both));
    notes.collect()
}

fn change(frame: &Frame, both: [&str; 2]) -> Option<String> {
    // Means over all runs of all cases.
    let means = |measure: &str| {
        let [from, to] = both.map(|policy| {
            let policy = frame.policy_index(policy)?;
            let cases = 0..frame.cases.len();
            let all = cases.flat_map(|case| frame.run_values(case, policy, measure).to_vec());
            mean(&all.collect::<Vec<_>>())
        });
        Some((from?, to?))
    };
    let (before, after) = means("cpi")?;
    let (moved, away) = (means("migrations_hz")?, means("away_percent")?);
    let mut changes = Vec::new();
    for name in CpiStack::NAMES.into_iter().chain(["moves"]) {
        let (before, after) = means(&format!("cpi_{name}"))?;
        changes.push((name, after - before));
    }
    changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let named = changes.iter().take(3);
    let named = named.map(|(cause, change)| format!("{cause} {change:+.3}"));
    Some(format!(
        "From {} to {} the cycles per instruction of all programs together go from {before:.3} to \
         {after:.3}, by cause mostly {}; a thread comes onto another CPU {:.2} and {:.2} times a second and \
         is away from the node of its memory for {:.0} and {:.0} % of its time.",
        both[0],
        both[1],
        named.collect::<Vec<_>>().join(", "),
        moved.0,
        moved.1,
        away.0,
        away.1,
    ))
}

/// Table `time-alone`: workloads with as much work as in the paper (experiment `long`) compared
/// with the shorter work of the other experiments (`short`). Rows `CORES/NUMBER/POLICY`; columns
/// `stp_over_random` with the shorter time alone, `stp_over_random_long` with the paper's,
/// `difference_percent`.
pub(in crate::studies) fn time_alone(
    spec: &TableSpec,
    frames: &Frames,
) -> Result<ReportTable, StudyError> {
    let both = [require(frames, "short")?, require(frames, "long")?];
    let [short_s, long_s] = both.map(|frame| {
        let first = frame.run_values(0, 0, "alone_s").first();
        first.copied().unwrap_or(f64::NAN)
    });
    // Titles have times that depend on the scale, so they cannot be in the file.
    let columns = vec![
        ReportColumn::plain(
            "stp_over_random",
            &format!("STP over random, {short_s} s alone"),
        ),
        ReportColumn::plain(
            "stp_over_random_long",
            &format!("The same, {long_s} s alone"),
        ),
        ReportColumn::with_unit("difference_percent", "The first over the second", "%"),
    ];
    let mut table = ReportTable::new(&spec.key, &spec.title, columns)?;
    for (n, case) in both[0].cases.iter().enumerate() {
        for policy in both[0].policies.iter().filter(|policy| *policy != "random") {
            let [short, long] = both.map(|frame| {
                let groups = frame.group_by_label("case", IntervalBasis::Cases, |_| true);
                frame.cell(&ratio("stp", policy, "random"), &groups[n])
            });
            let values = short.value().zip(long.value());
            let percent = values.map(|(short, long)| 100.0 * (short / long - 1.0));
            let difference = number_or_missing(percent, "no runs");
            let key = format!("{}/{policy}", case.key);
            table.push(&key, vec![short, long, difference])?;
        }
    }
    Ok(table)
}

/// Table of throughput by machine, workload and policy: over linux, over symbiotic, and by itself.
pub(in crate::studies) fn machine_workloads(
    spec: &TableSpec,
    frames: &Frames,
) -> Result<ReportTable, StudyError> {
    let mut rows = Vec::new();
    for name in ["one-node", "all-nodes"] {
        let frame = require(frames, name)?;
        for (n, case) in frame.cases.iter().enumerate() {
            let stp = |policy: &str| {
                let policy = frame.policy_index(policy);
                policy.map_or(&[][..], |policy| frame.run_values(n, policy, "stp"))
            };
            for policy in &frame.policies {
                let own = stp(policy);
                let cells = vec![
                    paired_ratio_cell(own, stp("linux")),
                    paired_ratio_cell(own, stp("symbiotic")),
                    // One workload: a mean without an interval, as of several workloads.
                    interval_cell(&mean(own).into_iter().collect::<Vec<_>>()),
                ];
                rows.push((format!("{name}/{}/{policy}", case.key), cells));
            }
        }
    }
    spec.fill_rows(rows)
}

/// Table of the learnt disadvantages: rows `MACHINE/CORES/CORE`; columns `node`,
/// `memory_latency_ns`, `disadvantage`, `expected`.
pub(in crate::studies) fn learnt(
    spec: &TableSpec,
    frames: &Frames,
) -> Result<ReportTable, StudyError> {
    let frame = require(frames, "learnt")?;
    let mut rows = Vec::new();
    for (n, policy) in frame.policies.iter().enumerate() {
        for group in frame.group_by_label("place", IntervalBasis::Cases, |_| true) {
            let CaseGroup { key, cases, .. } = &group;
            // These are the same in all workloads and runs.
            let first = |measure| {
                let value = frame.run_values(cases[0], n, measure).first().copied();
                number_or_missing(value, "not run")
            };
            let node = frame.cases[cases[0]].value("node").parse::<u64>();
            let disadvantage = CellQuery {
                measure: "disadvantage",
                policy,
                ..CellQuery::default()
            };
            let cells = vec![
                node.map_or_else(|_| Cell::missing("not run"), Cell::from),
                first("memory_latency_ns"),
                frame.cell(&disadvantage, &group),
                first("expected_disadvantage"),
            ];
            rows.push((format!("{policy}/{key}"), cells));
        }
    }
    spec.fill_rows(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn decision_at_break_even_leaves_no_gain(ratio in 1.0001f64..3.0) {
            let us = break_even_us(ratio).unwrap();
            prop_assert!((charged(ratio, us) - 1.0).abs() < 1e-9);
            prop_assert!(charged(ratio, us / 2.0) > 1.0);
        }
    }

    #[test]
    fn without_gain_there_is_no_limit() {
        assert_eq!(break_even_us(1.0), None);
        assert_eq!(charged(2.0, 1e9), 0.0);
    }
}
