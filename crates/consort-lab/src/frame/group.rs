//! Cases that are taken together.

use super::{Case, Frame};

/// Kind of a group's interval: over its cases or over its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// The program whose values are meant, where measures are of programs.
    pub program: Option<String>,
}

impl Frame {
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

impl Case {
    /// The value of a label; of `case` the key, of an unknown one nothing.
    pub fn value(&self, label: &str) -> &str {
        match (label, self.labels.get(label)) {
            (_, Some(value)) => value,
            ("case", None) => &self.key,
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::frame;
    use super::*;

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
