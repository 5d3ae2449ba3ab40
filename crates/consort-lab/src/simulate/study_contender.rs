//! Contenders by the names that rows have: `POLICY`, `POLICY on OS`, `POLICY every N ms`.

use consort_experiment::{Contender, ExperimentError};
use std::time::Duration;

/// A contender and its quantum, where it is not the policy's own.
pub(crate) struct StudyContender {
    pub contender: Contender,
    pub quantum: Option<Duration>,
}

impl StudyContender {
    /// Reads a name of rows; `os` is beneath policies that name no other.
    ///
    /// # Errors
    /// Unknown policies and models of operating systems.
    pub fn new(name: &str, os: &str) -> Result<Self, ExperimentError> {
        let (name, quantum) = match name
            .strip_suffix(" ms")
            .and_then(|n| n.split_once(" every "))
        {
            Some((before, ms)) => (before, ms.parse().ok().map(Duration::from_millis)),
            None => (name, None),
        };
        let (policy, os) = name.split_once(" on ").unwrap_or((name, os));
        let contender = Contender::new(policy, os)?;
        Ok(Self { contender, quantum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expect: (&str, &str, Option<u64>)) {
        let entrant = StudyContender::new(name, "linux").unwrap();
        let ms = entrant.quantum.map(|q| q.as_millis() as u64);
        let contender = &entrant.contender;
        assert_eq!((contender.name(), contender.os(), ms), expect);
    }

    #[test]
    fn names_of_rows_say_policy_system_and_quantum() {
        check("hrrs", ("hrrs", "linux", None));
        check("kuths on pinned", ("kuths", "pinned", None));
        check("random every 4 ms", ("random", "linux", Some(4)));
        assert!(StudyContender::new("kuths on linus", "linux").is_err());
    }
}
