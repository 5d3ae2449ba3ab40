//! Cases that are taken together.

use super::{Case, Frame};

/// Kind of a group's interval: over its cases or over its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Over {
    /// Cases, each the mean of its runs; the runs where there is one case.
    #[default]
    Cases,
    /// Runs, each the mean of its cases.
    Runs,
}

/// Cases that share a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// First part of the keys of its rows.
    pub key: String,
    /// Positions of its cases.
    pub cases: Vec<usize>,
    /// Kind of its intervals.
    pub over: Over,
    /// The program whose values are meant, where measures are of programs.
    pub program: Option<String>,
}

impl Frame {
    /// All cases that a condition holds for, as one group.
    pub fn all(&self, key: &str, over: Over, holds: impl Fn(&Case) -> bool) -> Group {
        let cases = self.cases.iter().enumerate();
        let cases = cases.filter(|(_, case)| holds(case)).map(|(n, _)| n);
        Group {
            key: key.to_owned(),
            cases: cases.collect(),
            over,
            program: None,
        }
    }

    /// Cases by the value of a label, `case` for their keys, in the order in which values come.
    pub fn by(&self, label: &str, over: Over, holds: impl Fn(&Case) -> bool) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (n, case) in self
            .cases
            .iter()
            .enumerate()
            .filter(|(_, case)| holds(case))
        {
            let value = case.value(label);
            match groups.iter_mut().find(|group| group.key == value) {
                Some(group) => group.cases.push(n),
                None => groups.push(Group {
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
    pub fn by_program(&self, holds: impl Fn(&Case) -> bool) -> Vec<Group> {
        let names = self.cases.iter().flat_map(|case| case.programs.clone());
        let names: std::collections::BTreeSet<String> = names.collect();
        self.of_programs(&names.into_iter().collect::<Vec<_>>(), holds)
    }

    /// A group for each of these programs, with the cases that have it.
    pub fn of_programs(&self, names: &[String], holds: impl Fn(&Case) -> bool) -> Vec<Group> {
        let group = |name: &String| Group {
            program: Some(name.clone()),
            ..self.all(name, Over::Runs, |c| holds(c) && c.programs.contains(name))
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
        let keys = |groups: Vec<Group>| groups.into_iter().map(|g| g.key).collect::<Vec<_>>();
        assert_eq!(keys(frame.by("program", Over::Runs, |_| true)), ["a", "b"]);
        assert_eq!(keys(frame.by("case", Over::Runs, |_| true)), ["a/4", "b/4"]);
        let programs = frame.by_program(|_| true);
        let one = programs.iter().find(|group| group.key == "one").unwrap();
        assert_eq!(one.cases, [0, 1]);
        assert_eq!(frame.all("all", Over::Cases, |c| c.key == "b/4").cases, [1]);
    }
}
