//! Policies from outside of the registry, for example from Python.

use consort_core::policy::PolicyResult;
use consort_core::{Signal, SignalOffers, Topology};
use std::fmt;
use std::sync::Arc;

/// Opens a policy on a machine; each run has one of its own.
type OpenPolicy = Arc<dyn Fn(&Topology, &SignalOffers) -> PolicyResult + Send + Sync>;

/// A policy from outside of the registry.
#[derive(Clone)]
pub struct CustomPolicy {
    /// Its name.
    pub name: String,
    /// Signals without which it cannot decide.
    pub needs: Vec<Signal>,
    /// Its usual quantum, ms.
    pub quantum_ms: u64,
    /// Opens one for each run.
    pub open: OpenPolicy,
}

impl fmt::Debug for CustomPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl PartialEq for CustomPolicy {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.open, &other.open)
    }
}

impl Eq for CustomPolicy {}

#[cfg(test)]
mod tests {
    use super::super::testing::{chip, pair};
    use super::super::{Contender, Experiment};
    use super::*;
    use consort_core::policies;

    fn none(needs: &[Signal]) -> CustomPolicy {
        CustomPolicy {
            name: "mine".to_owned(),
            needs: needs.to_vec(),
            quantum_ms: 100,
            open: Arc::new(|topology, offers| {
                policies::open(topology, offers, &"workover".parse()?)
            }),
        }
    }

    fn experiment() -> Experiment {
        Experiment {
            chip: chip("bulldozer-6282se"),
            workload: pair(["hmmer", "povray"]),
            alone_s: 0.5,
            quantum: Some(std::time::Duration::from_millis(100)),
            free_migration: false,
        }
    }

    #[test]
    fn it_runs_as_the_same_policy_of_the_registry_does() {
        let experiment = experiment();
        let work = experiment.measure_work(1).unwrap();
        let run = |contender: &Contender| experiment.run(contender, &work, 1, None).unwrap();
        let custom = Contender::from_policy(none(&[Signal::CpuTime]), "linux").unwrap();
        let ours = run(&custom);
        let theirs = run(&Contender::new("workover", "linux").unwrap());
        assert_eq!((ours.policy.as_str(), ours.os.as_str()), ("mine", "linux"));
        assert_eq!(
            (ours.programs, ours.energy_j),
            (theirs.programs, theirs.energy_j)
        );
    }

    #[test]
    fn needs_that_the_machine_does_not_meet_are_named() {
        let experiment = experiment();
        let work = experiment.measure_work(1).unwrap();
        let contender = Contender::from_policy(none(&[Signal::CodeFootprint]), "linux").unwrap();
        let error = experiment.run(&contender, &work, 1, None).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("policy mine needs code-footprint, but this machine offers cpu-time"),
            "{text}"
        );
        assert!(Contender::from_policy(none(&[]), "linus").is_err());
    }
}
