//! Measurements of an experiment as one long table: case, policy, run, program, measure, value.
//!
//! Purpose: every experiment gives a [`Frame`], and every table, figure and note is a view of
//! one. Usage: name the axes with [`Frame::new`], fill measures with [`Frame::set_run_values`], then read
//! [`Frame::cell`]s of [`CaseGroup`]s of cases. Runs of unlike policies with one number have the same
//! seed, so ratios are taken run by run. Pitfall: whether an interval is over cases or over runs
//! is the group's to say.

mod group;
mod measure;
mod view;

pub use group::{CaseGroup, IntervalBasis};
pub use measure::{BetterDirection, MEASURES, Measure, find as measure};
pub use view::{CellQuery, CellView};
pub(crate) use view::{interval_cell, mean_ratio_cell, number_or_missing, paired_ratio_cell};

use std::collections::BTreeMap;

/// A workload on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// Key of its rows.
    pub key: String,
    /// Names and values by which cases are grouped, for example `program` and `threads`.
    pub labels: BTreeMap<String, String>,
    /// Names of its programs, in the order of the workload.
    pub programs: Vec<String>,
}

impl Case {
    /// A case with one label.
    pub fn with_label(key: &str, label: &str, value: &str) -> Self {
        Self {
            key: key.to_owned(),
            labels: BTreeMap::from([(label.to_owned(), value.to_owned())]),
            programs: Vec::new(),
        }
    }
}

/// All measurements of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The cases, in the order of rows.
    pub cases: Vec<Case>,
    /// The policies, in the order of rows.
    pub policies: Vec<String>,
    /// Runs of each case and policy; they differ in their seed.
    pub runs: usize,
    /// Values by measure: by case, then policy, then run.
    values: BTreeMap<String, Vec<f64>>,
    /// Values by measure of programs, in the same order, with a value for each program of the case.
    of_programs: BTreeMap<String, Vec<Vec<f64>>>,
}

/// One line of the long table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameRow<'a> {
    /// Key of the case.
    pub case: &'a str,
    /// The policy.
    pub policy: &'a str,
    /// Number of the run, from 0; the seed is the study's and this together.
    pub run: usize,
    /// The program; none for measures of the whole run.
    pub program: Option<&'a str>,
    /// Key of the measure.
    pub measure: &'a str,
    /// The value, in the measure's unit.
    pub value: f64,
}

impl Frame {
    /// A frame without measures.
    pub fn new(cases: Vec<Case>, policies: Vec<String>, runs: usize) -> Self {
        Self {
            cases,
            policies,
            runs,
            values: BTreeMap::new(),
            of_programs: BTreeMap::new(),
        }
    }

    /// Sets a measure of every run: by case, then policy, then run.
    pub fn set_run_values(&mut self, measure: &str, values: Vec<f64>) {
        debug_assert_eq!(values.len(), self.len());
        self.values.insert(measure.to_owned(), values);
    }

    /// Sets a measure of every program of every run, in the same order.
    pub fn set_program_values(&mut self, measure: &str, values: Vec<Vec<f64>>) {
        debug_assert_eq!(values.len(), self.len());
        self.of_programs.insert(measure.to_owned(), values);
    }

    /// Runs of all cases and policies.
    fn len(&self) -> usize {
        self.cases.len() * self.policies.len() * self.runs
    }

    /// True if it has a measure, of runs or of programs.
    pub fn has_measure(&self, measure: &str) -> bool {
        self.values.contains_key(measure) || self.of_programs.contains_key(measure)
    }

    /// Position of a policy; none where it was not run.
    pub fn policy_index(&self, name: &str) -> Option<usize> {
        self.policies.iter().position(|policy| policy == name)
    }

    /// A measure of the runs of a case under a policy; empty where it was not measured.
    pub fn run_values(&self, case: usize, policy: usize, measure: &str) -> &[f64] {
        let range = self.run_range(case, policy);
        self.values.get(measure).map_or(&[], |all| &all[range])
    }

    /// A measure of the runs of each program of a case, run by run; empty where it was not
    /// measured.
    pub fn program_values(&self, case: usize, policy: usize, measure: &str) -> &[Vec<f64>] {
        let range = self.run_range(case, policy);
        self.of_programs.get(measure).map_or(&[], |all| &all[range])
    }

    fn run_range(&self, case: usize, policy: usize) -> std::ops::Range<usize> {
        let first = (case * self.policies.len() + policy) * self.runs;
        first..first + self.runs
    }

    /// The long table, measure by measure.
    pub fn rows(&self) -> impl Iterator<Item = FrameRow<'_>> {
        let of_runs = self.values.iter().flat_map(|(measure, values)| {
            let numbered = values.iter().enumerate();
            numbered.map(|(n, &value)| self.row(n, None, measure, value))
        });
        let of_programs = self.of_programs.iter().flat_map(move |(measure, values)| {
            values.iter().enumerate().flat_map(move |(n, each)| {
                let each = each.iter().enumerate();
                each.map(move |(program, &value)| self.row(n, Some(program), measure, value))
            })
        });
        of_runs.chain(of_programs)
    }

    fn row<'a>(
        &'a self,
        n: usize,
        program: Option<usize>,
        measure: &'a str,
        value: f64,
    ) -> FrameRow<'a> {
        let case = &self.cases[n / (self.policies.len() * self.runs)];
        let program = program.and_then(|p| case.programs.get(p));
        FrameRow {
            case: &case.key,
            policy: &self.policies[n / self.runs % self.policies.len()],
            run: n % self.runs,
            program: program.map(String::as_str),
            measure,
            value,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two cases of two policies and two runs; throughput counts up in the order of the lines.
    pub(crate) fn frame() -> Frame {
        let case = |name: &str| Case {
            programs: vec!["one".to_owned(), name.to_owned()],
            ..Case::with_label(&format!("{name}/4"), "program", name)
        };
        let policies = ["base", "other"].map(str::to_owned).to_vec();
        let mut frame = Frame::new(["a", "b"].map(case).to_vec(), policies, 2);
        frame.set_run_values("stp", (1..=8).map(f64::from).collect());
        frame.set_program_values(
            "slowdown",
            (1..=8).map(|n| vec![f64::from(n), 9.0]).collect(),
        );
        frame
    }

    #[test]
    fn runs_are_found_by_case_and_policy() {
        let frame = frame();
        assert_eq!(frame.run_values(0, 1, "stp"), [3.0, 4.0]);
        assert_eq!(frame.program_values(1, 0, "slowdown")[1], [6.0, 9.0]);
        assert!(frame.run_values(0, 0, "antt").is_empty());
        assert_eq!(frame.policy_index("none"), None);
    }

    #[test]
    fn the_long_table_has_a_line_for_each_value() {
        let frame = frame();
        let lines: Vec<FrameRow<'_>> = frame.rows().collect();
        assert_eq!(lines.len(), 8 + 16);
        let fourth = (lines[3].case, lines[3].policy, lines[3].run, lines[3].value);
        assert_eq!(fourth, ("a/4", "other", 1, 4.0));
        let last = lines[23];
        assert_eq!((last.program, last.measure), (Some("b"), "slowdown"));
    }
}
