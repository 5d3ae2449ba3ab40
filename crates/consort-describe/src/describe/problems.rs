//! Problems of a description, key by key.

use std::fmt::Write as _;

/// One value that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionProblem {
    /// Path of the key in the file, for example `phase[2].mlp.value`.
    pub key: String,
    /// Account of what is wrong and what would be right.
    pub message: String,
}

/// Everything found wrong with a description, in the order of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<DescriptionProblem>);

impl Problems {
    /// Notes a problem.
    pub fn add(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.0.push(DescriptionProblem {
            key: key.into(),
            message: message.into(),
        });
    }

    /// Notes a value that is not a number from `min` to `max`.
    pub fn check_range(&mut self, key: impl Into<String>, value: f64, min: f64, max: f64) {
        if !(min..=max).contains(&value) {
            let mut message = String::new();
            let _ = write!(message, "is {value}; expected {min} to {max}");
            self.add(key, message);
        }
    }

    /// Notes the problems when `holds` is false.
    pub fn require(&mut self, holds: bool, key: impl Into<String>, message: impl Into<String>) {
        if !holds {
            self.add(key, message);
        }
    }

    /// The problems.
    pub fn list(&self) -> &[DescriptionProblem] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_their_range_are_noted_with_it() {
        let mut problems = Problems::default();
        problems.check_range("a.b", 3.0, 0.0, 4.0);
        problems.check_range("a.c", f64::NAN, 0.0, 1.0);
        let expect = [DescriptionProblem {
            key: "a.c".to_owned(),
            message: "is NaN; expected 0 to 1".to_owned(),
        }];
        assert_eq!(problems.list(), expect);
    }
}
