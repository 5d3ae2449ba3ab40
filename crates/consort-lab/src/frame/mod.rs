//! Measurements of an experiment, by measure, case, policy, run and program.
//!
//! Every experiment gives a [`Frame`], and every table, figure and note is a view of one. Runs of
//! different policies with one number have the same seed, so that ratios are taken run by run. The
//! [`CaseGroup`] decides if an interval is over cases or over runs.

mod measure;
mod view;
pub use measure::{BetterDirection, MEASURES, Measure, find as measure};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
pub use view::{CellQuery, CellView};
pub(crate) use view::{interval_cell, mean_ratio_cell, number_or_missing, paired_ratio_cell};

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

    /// The value of a label; of `case` the key, of an unknown one nothing.
    pub fn value(&self, label: &str) -> &str {
        match (label, self.labels.get(label)) {
            (_, Some(value)) => value,
            ("case", None) => &self.key,
            _ => "",
        }
    }
}

/// Kind of a group's intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "IntervalBasisSpec")]
pub enum IntervalBasis {
    /// Cases, each the mean of its runs; the runs where there is one case.
    #[default]
    Cases,
    /// Runs, each the mean of its cases.
    Runs,
}

/// Cases that share a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseGroup {
    /// First part of the keys of its rows.
    pub key: String,
    /// Positions of its cases.
    pub cases: Vec<usize>,
    /// Kind of its intervals.
    pub over: IntervalBasis,
    /// The program whose values are meant, if measures are of programs.
    pub program: Option<String>,
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
    /// Reasons for which results may mean less than they seem to, one sentence each.
    pub warnings: Vec<String>,
    /// Values by measure: by case, then policy, then run.
    values: BTreeMap<String, Vec<f64>>,
    /// Values by measure of programs, in the same order, with a value for each program of the case.
    of_programs: BTreeMap<String, Vec<Vec<f64>>>,
}

impl Frame {
    /// A frame without measures.
    pub fn new(cases: Vec<Case>, policies: Vec<String>, runs: usize) -> Self {
        Self {
            cases,
            policies,
            runs,
            warnings: Vec::new(),
            values: BTreeMap::new(),
            of_programs: BTreeMap::new(),
        }
    }

    /// Runs of all cases and policies.
    fn all_runs(&self) -> usize {
        self.cases.len() * self.policies.len() * self.runs
    }

    /// Sets a measure of every run: by case, then policy, then run.
    pub fn set_run_values(&mut self, measure: &str, values: Vec<f64>) {
        debug_assert_eq!(values.len(), self.all_runs());
        self.values.insert(measure.to_owned(), values);
    }

    /// Sets a measure of every program of every run, in the same order.
    pub fn set_program_values(&mut self, measure: &str, values: Vec<Vec<f64>>) {
        debug_assert_eq!(values.len(), self.all_runs());
        self.of_programs.insert(measure.to_owned(), values);
    }

    /// Position of a policy; `None` if it was not run.
    pub fn policy_index(&self, name: &str) -> Option<usize> {
        self.policies.iter().position(|policy| policy == name)
    }

    /// A measure of the runs of a case under a policy; empty if it was not measured.
    pub fn run_values(&self, case: usize, policy: usize, measure: &str) -> &[f64] {
        let range = self.run_range(case, policy);
        self.values.get(measure).map_or(&[], |all| &all[range])
    }

    /// A measure of the runs of each program of a case, run by run; empty if it was not measured.
    pub fn program_values(&self, case: usize, policy: usize, measure: &str) -> &[Vec<f64>] {
        let range = self.run_range(case, policy);
        self.of_programs.get(measure).map_or(&[], |all| &all[range])
    }

    fn run_range(&self, case: usize, policy: usize) -> std::ops::Range<usize> {
        let first = (case * self.policies.len() + policy) * self.runs;
        first..first + self.runs
    }

    /// All cases that a condition holds for, as one group.
    pub fn group_all(
        &self,
        key: &str,
        over: IntervalBasis,
        holds: impl Fn(&Case) -> bool,
    ) -> CaseGroup {
        let cases = self.cases.iter().enumerate();
        let cases = cases.filter(|(_, case)| holds(case)).map(|(n, _)| n);
        CaseGroup {
            key: key.to_owned(),
            cases: cases.collect(),
            over,
            program: None,
        }
    }

    /// Cases by the value of a label, `case` for their keys, in the order in which values come.
    pub fn group_by_label(
        &self,
        label: &str,
        over: IntervalBasis,
        holds: impl Fn(&Case) -> bool,
    ) -> Vec<CaseGroup> {
        let mut groups: Vec<CaseGroup> = Vec::new();
        for (n, case) in self
            .cases
            .iter()
            .enumerate()
            .filter(|(_, case)| holds(case))
        {
            let value = case.value(label);
            match groups.iter_mut().find(|group| group.key == value) {
                Some(group) => group.cases.push(n),
                None => groups.push(CaseGroup {
                    key: value.to_owned(),
                    cases: vec![n],
                    over,
                    program: None,
                }),
            }
        }
        groups
    }

    /// A group for each program, with the cases that have it, by the alphabet.
    pub fn group_by_program(&self, holds: impl Fn(&Case) -> bool) -> Vec<CaseGroup> {
        let names = self.cases.iter().flat_map(|case| case.programs.clone());
        let names: std::collections::BTreeSet<String> = names.collect();
        self.group_named_programs(&names.into_iter().collect::<Vec<_>>(), holds)
    }

    /// A group for each of these programs, with the cases that have it.
    pub fn group_named_programs(
        &self,
        names: &[String],
        holds: impl Fn(&Case) -> bool,
    ) -> Vec<CaseGroup> {
        let group = |name: &String| CaseGroup {
            program: Some(name.clone()),
            ..self.group_all(name, IntervalBasis::Runs, |c| {
                holds(c) && c.programs.contains(name)
            })
        };
        names.iter().map(group).collect()
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
    fn groups_are_made_by_labels_keys_and_programs() {
        let frame = frame();
        let keys = |groups: Vec<CaseGroup>| groups.into_iter().map(|g| g.key).collect::<Vec<_>>();
        assert_eq!(
            keys(frame.group_by_label("program", IntervalBasis::Runs, |_| true)),
            ["a", "b"]
        );
        assert_eq!(
            keys(frame.group_by_label("case", IntervalBasis::Runs, |_| true)),
            ["a/4", "b/4"]
        );
        let programs = frame.group_by_program(|_| true);
        let one = programs.iter().find(|group| group.key == "one").unwrap();
        assert_eq!(one.cases, [0, 1]);
        assert_eq!(
            frame
                .group_all("all", IntervalBasis::Cases, |c| c.key == "b/4")
                .cases,
            [1]
        );
    }
}
