//! What is compared: a policy on an operating system, or an operating system alone.

use super::error::ExperimentError;
use super::oracle::{self, Oracle, Truth};
use consort_core::policies;
use consort_core::policies::Objective;
use consort_core::policy::{Policy, PolicySpec};
use consort_core::{Offers, requested};
use consort_sim::chip::Chip;
use consort_sim::engine::EngineError;
use std::sync::Arc;

/// Operating systems that are contenders by name, with no policy on top. `random` is a policy
/// here, as on live machines.
const SYSTEMS: [&str; 4] = ["linux", "linux-grouped", "linux-itmt", "pinned"];

/// The policy that leaves everything to the operating system.
const NO_POLICY: &str = "none";

/// A policy with its options and the operating system beneath it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contender {
    name: String,
    who: Who,
    os: String,
}

/// Who decides.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    /// A policy of the registry.
    Policy(PolicySpec),
    /// The scheduler that knows the truth.
    Oracle(Objective),
}

impl Contender {
    /// Reads `workover:margin=0.1`, `oracle`, or the name of an operating system's model.
    ///
    /// # Errors
    /// Unknown names, options or values; policies for live machines only.
    pub fn new(text: &str, os: &str) -> Result<Self, ExperimentError> {
        consort_sim::os::find(os).map_err(EngineError::from)?;
        let mut spec: PolicySpec = text.parse()?;
        spec.attach(|path| std::fs::read_to_string(path))?;
        let mut system = os;
        if let Some(named) = SYSTEMS.iter().find(|system| **system == spec.name) {
            system = named;
            spec.name = NO_POLICY.to_owned();
        }
        Ok(Self {
            name: text.to_owned(),
            who: who(spec)?,
            os: system.to_owned(),
        })
    }

    /// As it was asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Name of the operating system's model.
    pub fn os(&self) -> &str {
        &self.os
    }

    /// The usual quantum, ms, once what the policy needs is checked against what a machine offers.
    ///
    /// # Errors
    /// Needs that are not met.
    pub(super) fn quantum_ms(&self, offers: &Offers) -> Result<u64, ExperimentError> {
        match &self.who {
            Who::Policy(spec) => Ok(requested(&spec.name, offers)?.quantum_ms),
            Who::Oracle(_) => Ok(oracle::QUANTUM_MS),
        }
    }

    /// Where the machine is to leave its truth, for the one contender that may know it.
    pub(super) fn truth(&self) -> Option<Truth> {
        matches!(self.who, Who::Oracle(_)).then(Truth::default)
    }

    /// The policy, which has seen no machine yet.
    ///
    /// # Errors
    /// Options or values that are unknown.
    pub(super) fn build(
        &self,
        chip: &Arc<Chip>,
        truth: Option<&Truth>,
    ) -> Result<Box<dyn Policy>, ExperimentError> {
        match &self.who {
            Who::Policy(spec) => Ok(policies::build(spec)?),
            Who::Oracle(objective) => {
                let truth = truth.cloned().unwrap_or_default();
                Ok(Box::new(Oracle::new(chip, &truth, *objective)))
            }
        }
    }
}

fn who(spec: PolicySpec) -> Result<Who, ExperimentError> {
    if spec.name == oracle::NAME {
        return Ok(Who::Oracle(oracle::objective(&spec.options)?));
    }
    policies::build(&spec)?;
    let info = policies::find(&spec.name)?;
    if !info.simulated {
        return Err(ExperimentError::LiveOnly(info.name));
    }
    Ok(Who::Policy(spec))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operating_systems_are_contenders_without_a_policy() {
        let linux = Contender::new("linux", "pinned").unwrap();
        assert_eq!((linux.name(), linux.os()), ("linux", "linux"));
        let workover = Contender::new("workover:margin=0.1", "linux-itmt").unwrap();
        assert_eq!(workover.os(), "linux-itmt");
        assert!(Contender::new("linx", "linux").is_err());
        assert!(Contender::new("linux:x=1", "linux").is_err());
    }
}
