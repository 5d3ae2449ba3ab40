//! Time that a policy takes to decide, on made-up observations that have every signal.
//!
//! A policy that says that it is of no use on such a machine has no rows.

use super::Bench;
use super::case::{BenchCase, Effort, measure_ns};
use super::error::BenchError;
use super::synthetic::{observations, offers};
use consort_experiment::ExperimentError;

use consort_core::policy::{Policy, PolicyError, PolicyInfo, PolicyRng, PolicySpec, View};
use consort_core::topology::{CoreType, PuFacts};
use consort_core::{Observation, PuId, Topology, policies};
use rand::SeedableRng;
use std::hint::black_box;

/// Observations that a policy sees in turn.
const QUANTA: u64 = 8;

/// A machine and what runs on it: a thread for every PU.
pub(super) struct DecisionLoad {
    /// Suffix of the bench's name.
    suffix: &'static str,
    /// Cores of the two machines.
    cores: [u32; 2],
    /// PUs of a core.
    smt: u32,
    /// Cores of a last-level cache domain; all when none.
    domain: Option<u32>,
    /// Threads of a program.
    siblings: u32,
    /// In words.
    text: &'static str,
}

/// A program on every PU of cores that are shared.
const SHARED_CORES: DecisionLoad = DecisionLoad {
    suffix: "",
    cores: [40, 512],
    smt: 2,
    domain: None,
    siblings: 1,
    text: "80 threads on 40 cores, 1024 on 512",
};

/// Programs of several threads, and nobody to ask about them: where only the guidelines of
/// `holistic` decide.
const SHARED_CACHES: DecisionLoad = DecisionLoad {
    suffix: "-guidelines",
    cores: [80, 1024],
    smt: 1,
    domain: Some(8),
    siblings: 4,
    text: "80 threads of 20 programs on 80 cores, 1024 of 256 on 1024",
};

/// One policy among some threads.
pub(super) struct DecisionBench {
    policy: &'static PolicyInfo,
    crowd: &'static DecisionLoad,
}

/// The benches of a policy.
pub(super) fn policy_benches(policy: &'static PolicyInfo) -> Vec<DecisionBench> {
    let crowds: &[&'static DecisionLoad] = match policy.name {
        "holistic" => &[&SHARED_CORES, &SHARED_CACHES],
        _ => &[&SHARED_CORES],
    };
    { crowds.iter() }
        .map(|&crowd| DecisionBench { policy, crowd })
        .collect()
}

impl Bench for DecisionBench {
    fn name(&self) -> String {
        format!("decide-{}{}", self.policy.name, self.crowd.suffix)
    }

    fn summary(&self) -> String {
        format!("one decision of {}: {}", self.policy.name, self.crowd.text)
    }

    fn cases(&self, effort: Effort) -> Result<Vec<BenchCase>, BenchError> {
        let mut cases = Vec::new();
        for cores in self.crowd.cores {
            cases.extend(self.case(cores, effort)?);
        }
        Ok(cases)
    }
}

impl DecisionLoad {
    fn topology(&self, cores: u32) -> Result<Topology, BenchError> {
        let facts = (0..cores * self.smt).map(|pu| PuFacts {
            pu: PuId(pu),
            package: 0,
            node: 0,
            core: pu % cores,
            llc: self.domain.map_or(0, |domain| pu % cores / domain),
            l2: None,
            core_type: 0,
        });
        Ok(Topology::new(facts.collect(), vec![CoreType::uniform()])?)
    }
}

impl DecisionBench {
    fn case(&self, cores: u32, effort: Effort) -> Result<Option<BenchCase>, BenchError> {
        let name = format!("{}-{}", self.name(), self.crowd.smt * cores);
        let spec: PolicySpec = self.policy.name.parse().map_err(ExperimentError::from)?;
        let topology = self.crowd.topology(cores)?;
        let offers = offers()?;
        let policy = match policies::open(&topology, &offers, &spec) {
            Err(PolicyError::Unfit { .. }) => return Ok(None),
            opened => opened.map_err(ExperimentError::from)?,
        };
        let seen = observations(&topology, &offers, self.crowd.siblings, QUANTA);
        let measure = measure_ns(effort, decision_step(policy, topology, seen));
        Ok(Some(BenchCase::from_measure(name, "ns", measure)))
    }
}

/// Lets a policy decide on one observation after the other.
fn decision_step(
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
