//! Noting problems below one key.

use super::problems::Problems;

/// Problems of what lies below a key.
pub(crate) struct KeyScope<'a> {
    problems: &'a mut Problems,
    prefix: String,
}

impl<'a> KeyScope<'a> {
    /// Below `prefix`; at the top when it is empty.
    pub(crate) fn new(problems: &'a mut Problems, prefix: impl Into<String>) -> Self {
        Self {
            problems,
            prefix: prefix.into(),
        }
    }

    /// Below `key` of here.
    pub(crate) fn child(&mut self, key: &str) -> KeyScope<'_> {
        let prefix = self.path(key);
        KeyScope::new(self.problems, prefix)
    }

    /// Notes a value outside `min` to `max`.
    pub(crate) fn check_range(&mut self, key: &str, value: impl Into<f64>, (min, max): (f64, f64)) {
        self.problems
            .check_range(self.path(key), value.into(), min, max);
    }

    /// Notes the problem unless `holds`.
    pub(crate) fn require(&mut self, holds: bool, key: &str, message: impl Into<String>) {
        self.problems.require(holds, self.path(key), message);
    }

    fn path(&self, key: &str) -> String {
        match (self.prefix.as_str(), key) {
            ("", _) => key.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, _) => format!("{prefix}.{key}"),
        }
    }
}
