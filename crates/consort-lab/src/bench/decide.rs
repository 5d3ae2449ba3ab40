//! How long a policy takes to decide, on made-up observations that have every signal.
//!
//! A policy that says that it is of no use on such a machine has no rows.

use super::Bench;
use super::case::{Case, Effort, ns_each};
use super::error::BenchError;
use super::synthetic::{observations, offers};
use crate::experiment::ExperimentError;

use consort_core::policy::{Policy, PolicyInfo, PolicyRng, PolicySpec, View};
use consort_core::{Observation, Topology, policies};
use rand::SeedableRng;
use std::hint::black_box;

/// Cores, of two PUs each; there are as many threads as PUs.
const CORES: [u32; 2] = [40, 512];
/// Observations that a policy sees in turn.
const QUANTA: u64 = 8;

/// One policy.
pub(super) struct Decide(pub(super) &'static PolicyInfo);

impl Bench for Decide {
    fn name(&self) -> String {
        format!("decide-{}", self.0.name)
    }

    fn summary(&self) -> String {
        format!(
            "one decision of {}: 80 threads on 40 cores, 1024 on 512",
            self.0.name
        )
    }

    fn cases(&self, effort: Effort) -> Result<Vec<Case>, BenchError> {
        let mut cases = Vec::new();
        for cores in CORES {
            cases.extend(self.case(cores, effort)?);
        }
        Ok(cases)
    }
}

impl Decide {
    fn case(&self, cores: u32, effort: Effort) -> Result<Option<Case>, BenchError> {
        let name = format!("{}-{}", self.name(), 2 * cores);
        let spec: PolicySpec = self.0.name.parse().map_err(ExperimentError::from)?;
        let mut policy = policies::build(&spec).map_err(ExperimentError::from)?;
        let topology = Topology::uniform(cores, 2)?;
        let offers = offers()?;
        if policy.prepare(&topology, &offers).is_err() {
            return Ok(None);
        }
        let seen = observations(&topology, &offers, QUANTA);
        let measure = ns_each(effort, deciding(policy, topology, seen));
        Ok(Some(Case::measured(name, "ns", measure)))
    }
}

/// Lets a policy decide on one observation after the other.
fn deciding(
    mut policy: Box<dyn Policy>,
    topology: Topology,
    seen: Vec<Observation>,
) -> impl FnMut() {
    let mut rng = PolicyRng::seed_from_u64(1);
    let mut next = 0;
    move || {
        let view = View {
            topology: &topology,
            observation: &seen[next % seen.len()],
        };
        next += 1;
        black_box(policy.decide(black_box(view), &mut rng));
    }
}
