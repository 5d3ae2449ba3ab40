//! S6: what deciding costs.
//!
//! Charged are times of decisions, in every quantum, against the throughput.

use super::symbiosis::QUANTUM;
use crate::frame::{CaseGroup, CellQuery, Frame, IntervalBasis, number_or_missing};
use crate::study::file::TableSpec;
use crate::study::{Frames, StudyError};
use consort_data::{Cell, ReportTable};

/// Decision times that are charged without being measured, µs.
const CHARGED_US: [f64; 2] = [100.0, 1000.0];

const LINUX: &str = "linux";
const SYMBIOTIC: &str = "symbiotic";
/// The oracle's time would tell how long the simulation takes to solve pairs.
const ORACLE: &str = "oracle";

fn quantum_us() -> f64 {
    QUANTUM.as_nanos() as f64 / 1e3
}

/// Rest of a throughput when deciding takes this long in every quantum.
pub(super) fn charged(stp: f64, decision_us: f64) -> f64 {
    stp * (1.0 - decision_us / quantum_us()).max(0.0)
}

/// The time per quantum that costs the whole gain; none without one.
fn break_even_us(ratio: f64) -> Option<f64> {
    (ratio > 1.0).then(|| (1.0 - 1.0 / ratio) * quantum_us())
}

/// Throughput over linux, when deciding takes no time.
fn over_linux(frame: &Frame, group: &CaseGroup, policy: &str) -> Cell {
    let what = CellQuery {
        measure: "stp",
        policy,
        over: Some(LINUX),
        ..CellQuery::default()
    };
    frame.cell(&what, group)
}

fn near(frames: &Frames) -> Result<&Frame, StudyError> {
    let frame = frames.get("near").map(|frame| &**frame);
    frame.ok_or_else(|| StudyError::part("near", "is missing"))
}

/// Cases by number of cores, and all of them.
fn groups(frame: &Frame) -> Vec<CaseGroup> {
    let mut groups = frame.group_by_label("cores", IntervalBasis::Cases, |_| true);
    groups.push(frame.group_all("all", IntervalBasis::Cases, |_| true));
    groups
}

/// Table `limits`: throughput over linux, and how long deciding may take.
pub(super) fn limits(spec: &TableSpec, frames: &Frames) -> Result<ReportTable, StudyError> {
    let frame = near(frames)?;
    let mut rows = Vec::new();
    for group in groups(frame) {
        for policy in frame.policies.iter().filter(|policy| *policy != ORACLE) {
            let key = format!("{}/{policy}", group.key);
            rows.push((key, cells(frame, &group, policy)));
        }
    }
    spec.fill_rows(rows)
}

fn cells(frame: &Frame, group: &CaseGroup, policy: &str) -> Vec<Cell> {
    let excluded = over_linux(frame, group, policy);
    let ratio = excluded.value();
    let limit = number_or_missing(ratio.and_then(break_even_us), "no gain over linux");
    let at = |us: f64| {
        // Linux decides in the kernel.
        let us = if policy == LINUX { 0.0 } else { us };
        number_or_missing(ratio.map(|ratio| charged(ratio, us)), "no runs")
    };
    vec![excluded, limit, at(CHARGED_US[0]), at(CHARGED_US[1])]
}

/// Note on the time that deciding may take, over all workloads.
pub(super) fn note(frames: &Frames) -> Vec<String> {
    let Ok(frame) = near(frames) else {
        return Vec::new();
    };
    let all = frame.group_all("all", IntervalBasis::Cases, |_| true);
    let ratio = over_linux(frame, &all, SYMBIOTIC);
    let limit = ratio.value().and_then(break_even_us);
    let limit = limit.map_or_else(
        || "there is no gain that deciding could cost".to_owned(),
        |us| format!("deciding may take {us:.0} µs of a quantum before nothing is left of it"),
    );
    vec![format!(
        "Over all workloads symbiotic has {} times linux's throughput when deciding takes no time: \
         {limit}.",
        ratio.text()
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn at_break_even_nothing_is_left(ratio in 1.0001f64..3.0) {
            let us = break_even_us(ratio).unwrap();
            prop_assert!((charged(ratio, us) - 1.0).abs() < 1e-9);
            prop_assert!(charged(ratio, us / 2.0) > 1.0);
        }
    }

    #[test]
    fn without_a_gain_there_is_no_limit() {
        assert_eq!(break_even_us(1.0), None);
        assert_eq!(charged(2.0, 1e9), 0.0);
    }
}
