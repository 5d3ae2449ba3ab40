//! A workload ready to be run.

use super::mixes::DrawnMix;
use super::{QUANTUM, chip, part_error, programs};
use crate::simulate::experiment;
use crate::simulate::programs::{instance, join_entries};
use crate::study::StudyError;
use consort_experiment::ExperimentContext;
use consort_experiment::{
    AloneWork, Contender, DecisionListener, Experiment, RunOptions, RunResult,
};
use consort_sim::chip::Chip;
use consort_sim::engine::Observer;
use std::sync::Arc;

/// The operating system beneath every policy.
const OS: &str = "linux";

/// A workload, its machine, and the work of its programs.
#[derive(Clone)]
pub(in crate::studies) struct PreparedMix {
    pub mix: DrawnMix,
    pub experiment: Experiment,
    work: Vec<AloneWork>,
}

/// Policy that runs under the name that rows have.
fn contender(policy: &str) -> &str {
    match policy {
        "symbiotic" => "symbiotic:numa=false",
        "symbiotic-in-node" => "symbiotic:numa=true",
        "first-half" => "symbiotic:core-asymmetry=first-half",
        "core-asymmetry" => "symbiotic:core-asymmetry=true",
        other => other,
    }
}

impl PreparedMix {
    /// Measures the work of each program that takes it `alone_s` alone, near its memory.
    pub fn new(
        mix: &DrawnMix,
        alone_s: f64,
        context: &ExperimentContext<'_>,
    ) -> Result<Self, StudyError> {
        let all = programs::of_workloads()?;
        let entries = mix.names().into_iter().zip(&mix.programs);
        let entries = entries.map(|(name, &program)| instance(name, &all[program], 1));
        let workload = join_entries(entries.collect());
        let experiment = Experiment {
            quantum: Some(QUANTUM),
            ..experiment(&chip(mix.cores)?, workload, alone_s)
        };
        let work = experiment
            .measure_work(context.seed())
            .map_err(part_error(&mix.key()))?;
        Ok(Self {
            mix: mix.clone(),
            experiment,
            work,
        })
    }

    /// Returns the same work on another machine.
    pub fn on(&self, chip: &Arc<Chip>) -> Self {
        let mut other = self.clone();
        other.experiment.chip = Arc::clone(chip);
        other
    }

    /// Runs it once; the observer is told of everything.
    pub fn run(
        &self,
        policy: &str,
        seed: u64,
        observer: Box<dyn Observer>,
    ) -> Result<RunResult, StudyError> {
        self.run_heard(policy, seed, observer, None)
    }

    /// Runs it once with a listener to all decisions.
    pub fn run_heard(
        &self,
        policy: &str,
        seed: u64,
        observer: Box<dyn Observer>,
        listener: Option<DecisionListener>,
    ) -> Result<RunResult, StudyError> {
        let part = format!("{} under {policy}", self.mix.key());
        let contender = Contender::new(contender(policy), OS).map_err(part_error(&part))?;
        let options = RunOptions {
            observer: Some(observer),
            listener,
            ..RunOptions::default()
        };
        let run = self
            .experiment
            .run_with(&contender, &self.work, seed, options);
        run.map_err(part_error(&part))
    }
}
