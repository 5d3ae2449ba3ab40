//! The runs of S8: each workload under each policy on two machines that differ in the place of
//! memory.

use super::chips::{NEAR_FIRST_HALF, chip_with_memory};
use super::heard::DecisionFacts;
use super::mixes::DrawnMix;
use super::outcome::{SymbiosisOutcome, SymbiosisValue};
use super::prepare::PreparedMix;
use crate::frame::{interval_cell, mean_ratio_cell};
use crate::simulate::{map_jobs, run_every_case};
use crate::study::StudyError;
use consort_core::stats::{RatioInterval, mean};
use consort_data::Cell;
use consort_experiment::ExperimentContext;
use consort_experiment::watch::RemoteMemoryWatch;
use consort_sim::chip::Chip;
use std::sync::Arc;

/// The machines: with memory near the first half of the cores, and evenly placed.
pub(in crate::studies) const MACHINES: [(&str, Option<&[u32]>); 2] =
    [("one-node", NEAR_FIRST_HALF), ("all-nodes", None)];

/// The policies, in the order of rows.
pub(in crate::studies) const POLICIES: [&str; 7] = [
    "random",
    "linux",
    "symbiotic",
    "symbiotic-in-node",
    "core-asymmetry",
    "oracle",
    "first-half",
];
/// Position of the paper's rule.
pub(in crate::studies) const FIRST_HALF: usize = 6;
/// Position of the default scheduler.
pub(in crate::studies) const LINUX: usize = 1;
/// Position of the paper's scheduler, which pairs over the whole chip and knows nothing of cores.
pub(in crate::studies) const SYMBIOTIC: usize = 2;
/// Position of the policy that leaves threads on their nodes.
pub(in crate::studies) const IN_NODE: usize = 3;
/// Position of the policy that learns.
pub(in crate::studies) const LEARNING: usize = 4;

/// Extent of the study at a scale.
pub(in crate::studies) struct AsymmetryExtent {
    /// Cores in use.
    pub cores: &'static [usize],
    /// Workloads per number of cores.
    pub mixes: usize,
    /// Runs of each workload, policy and machine.
    pub runs: usize,
    /// Time of a program's work alone, s.
    pub alone_s: f64,
}

/// A run.
pub(in crate::studies) struct SymbiosisTrial {
    pub outcome: SymbiosisOutcome,
    pub heard: DecisionFacts,
}

/// Workloads with the chips that they run on and their trials.
pub(in crate::studies) struct SymbiosisTrials {
    pub mixes: Vec<DrawnMix>,
    pub runs: usize,
    /// Trials by machine, then workload, then policy, then run.
    trials: Vec<SymbiosisTrial>,
}

impl SymbiosisTrials {
    /// Runs everything. Work is measured near its memory.
    pub fn make(
        extent: &AsymmetryExtent,
        context: &ExperimentContext<'_>,
    ) -> Result<Self, StudyError> {
        let draw = |&cores: &usize| DrawnMix::draw_all(context.seed(), cores, extent.mixes);
        let mixes: Vec<DrawnMix> = extent.cores.iter().flat_map(draw).collect();
        let prepare = |mix: &DrawnMix| PreparedMix::new(mix, extent.alone_s, context);
        let prepared = map_jobs(context, &mixes, prepare)?;
        let mut placed = Vec::new();
        for (_, nodes) in MACHINES {
            for one in &prepared {
                placed.push(one.on(&chip_with_memory(one.mix.cores, nodes)?));
            }
        }
        Ok(Self {
            mixes,
            runs: extent.runs,
            trials: run_every_case(
                context,
                (&placed, &POLICIES, extent.runs),
                SymbiosisTrial::run,
            )?,
        })
    }

    /// The runs of a workload under a policy on a machine.
    pub fn trials_at(&self, machine: usize, mix: usize, policy: usize) -> &[SymbiosisTrial] {
        let before = (machine * self.mixes.len() + mix) * POLICIES.len() + policy;
        &self.trials[before * self.runs..(before + 1) * self.runs]
    }

    /// A value of each of these runs.
    pub fn values(
        &self,
        machine: usize,
        mix: usize,
        policy: usize,
        value: SymbiosisValue,
    ) -> Vec<f64> {
        let trials = self.trials_at(machine, mix, policy).iter();
        trials.map(|trial| value(&trial.outcome)).collect()
    }

    /// Workloads by number of cores, by the key of their rows, and `all` at the end.
    pub fn groups(&self) -> Vec<(String, Vec<usize>)> {
        let all = || 0..self.mixes.len();
        let mut cores: Vec<usize> = self.mixes.iter().map(|mix| mix.cores).collect();
        cores.dedup();
        let of = |cores: usize| all().filter(move |&mix| self.mixes[mix].cores == cores);
        let groups = cores
            .into_iter()
            .map(|cores| (cores.to_string(), of(cores).collect()));
        groups
            .chain([("all".to_owned(), all().collect())])
            .collect()
    }

    /// Mean over workloads of the mean over runs, with the interval over workloads.
    pub fn mean_of(
        &self,
        machine: usize,
        group: &[usize],
        policy: usize,
        value: impl Fn(&SymbiosisTrial) -> f64,
    ) -> Cell {
        let of_mix = |&mix: &usize| {
            let trials = self.trials_at(machine, mix, policy).iter();
            mean(&trials.map(&value).collect::<Vec<_>>())
        };
        interval_cell(&group.iter().filter_map(of_mix).collect::<Vec<_>>())
    }

    /// Geometric mean over workloads of a policy's value over another's on the same machine, taken
    /// run by run, with the interval over workloads.
    pub fn over(
        &self,
        machine: usize,
        group: &[usize],
        of: [usize; 2],
        value: SymbiosisValue,
    ) -> Cell {
        let of_mix = |&mix: &usize| {
            let [ours, theirs] = of.map(|policy| self.values(machine, mix, policy, value));
            let pairs = ours.into_iter().zip(theirs);
            let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
            RatioInterval::from_ratios(&ratios).map(|ratio| ratio.mean)
        };
        mean_ratio_cell(&group.iter().filter_map(of_mix).collect::<Vec<_>>())
    }

    /// Geometric mean of throughput, as [`SymbiosisTrials::over`] has it.
    pub fn stp_over(&self, machine: usize, group: &[usize], policy: usize, over: usize) -> Cell {
        self.over(machine, group, [policy, over], |o| o.stp)
    }
}

impl SymbiosisTrial {
    fn run(prepared: &PreparedMix, policy: &&str, seed: u64) -> Result<Self, StudyError> {
        let chip: &Arc<Chip> = &prepared.experiment.chip;
        let away = RemoteMemoryWatch::new(chip);
        let (heard, listener) = DecisionFacts::listen(chip);
        let watch = Box::new(away.clone());
        let run = prepared.run_heard(policy, seed, watch, Some(listener))?;
        let heard = heard.borrow().clone();
        Ok(Self {
            outcome: SymbiosisOutcome::new(&run, away.share()),
            heard: heard.over(run.simulated_s),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn positions_are_those_of_the_names() {
        let named = [LINUX, SYMBIOTIC, IN_NODE, LEARNING, FIRST_HALF].map(|p| POLICIES[p]);
        let own = ["symbiotic-in-node", "core-asymmetry", "first-half"];
        assert_eq!(named[..2], ["linux", "symbiotic"]);
        assert_eq!(named[2..], own);
    }

    /// Evenly placed, memory stays where `linux` leaves threads; with one node about half of them are
    /// away from it.
    #[test]
    fn machines_differ_in_where_memory_is() {
        let context = ExperimentContext::new(1, Scale::Quick, workers(2), &|_| ());
        let extent = AsymmetryExtent {
            cores: &[4],
            mixes: 1,
            runs: 1,
            alone_s: 0.5,
        };
        let trials = SymbiosisTrials::make(&extent, &context).unwrap();
        let away = |machine| trials.values(machine, 0, LINUX, |o| o.away)[0];
        assert_eq!(away(1), 0.0);
        assert!((away(0) - 0.5).abs() < 0.1, "{}", away(0));
        let learnt = |policy: usize| &trials.trials_at(0, 0, policy)[0].heard.learnt;
        assert!(learnt(LEARNING).iter().all(Option::is_some));
        assert!(learnt(SYMBIOTIC).iter().all(Option::is_none));
    }
}
