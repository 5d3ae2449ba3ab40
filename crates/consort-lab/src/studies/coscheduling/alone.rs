//! Every program alone with every number of cores.

use super::{part_error, quantum, runs, suite};
use crate::simulate::{self, map_jobs};
use crate::study::StudyError;
use consort_core::ProgramId;
use consort_core::coscheduling::{CoscheduleSlot, KnownProfiles, ProgramMeasure, SlotTrial};
use consort_experiment::ExperimentContext;
use consort_experiment::slots::{SlotTrials, Suite};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One run's measures by program and number of cores.
pub(in crate::studies) type AloneMeasures = BTreeMap<(ProgramId, u32), ProgramMeasure>;

/// All runs.
pub(in crate::studies) struct CoschedulingAloneRuns {
    pub suite: Suite,
    pub runs: Vec<AloneMeasures>,
}

impl CoschedulingAloneRuns {
    /// Returns the runs of this context, made once.
    pub fn get_or_run(context: &ExperimentContext<'_>) -> Result<Arc<Self>, StudyError> {
        context.get_or_compute("programs alone, co-scheduling", || Self::make(context))
    }

    fn make(context: &ExperimentContext<'_>) -> Result<Self, StudyError> {
        let suite = suite()?;
        let seeds: Vec<u64> = seeds(context).collect();
        let slots = suite.alone_slots();
        let jobs: Vec<(u64, &CoscheduleSlot)> = { seeds.iter() }
            .flat_map(|&seed| slots.iter().map(move |slot| (seed, slot)))
            .collect();
        let reported = map_jobs(context, &jobs, |(seed, slot)| {
            let reported = SlotTrials::new(&suite, quantum(context), *seed).run(slot);
            reported.map_err(part_error("programs alone"))
        })?;
        let runs = reported.chunks(slots.len()).map(table).collect();
        Ok(Self { suite, runs })
    }

    /// Number of cores, in every run, of a program's lowest energy-delay, where it is charged, of
    /// the energy that the machine draws whichever programs run, the share of its cores.
    pub fn best_charged(&self, id: ProgramId) -> Vec<f64> {
        let (cores, ids): (u32, Vec<ProgramId>) = (self.suite.cores(), self.suite.ids().collect());
        let best = |table: &AloneMeasures| {
            let profile = profile(cores, table);
            f64::from(profile.best_cores(id, profile.idle_w(&ids)))
        };
        self.runs.iter().map(best).collect()
    }

    /// Returns a value of every run of a program with so many cores.
    pub fn values(&self, id: ProgramId, cores: u32, of: fn(&ProgramMeasure) -> f64) -> Vec<f64> {
        let run = |table: &AloneMeasures| table.get(&(id, cores)).map(of);
        self.runs.iter().filter_map(run).collect()
    }

    /// Mean over runs of a value of a program with so many cores.
    pub fn mean(&self, id: ProgramId, cores: u32, of: fn(&ProgramMeasure) -> f64) -> f64 {
        let values = self.values(id, cores, of);
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }
}

/// Profile of programs alone in a run, as `greedy` is told it.
pub(in crate::studies) fn profile(cores: u32, table: &AloneMeasures) -> KnownProfiles {
    let mut profile = KnownProfiles::new(cores, &[]);
    for (&(program, with), &measure) in table {
        profile.record_trial(&SlotTrial {
            slot: CoscheduleSlot::alone(program, with),
            measures: vec![measure],
        });
    }
    profile
}

/// Seeds of the runs.
pub(super) fn seeds(context: &ExperimentContext<'_>) -> impl Iterator<Item = u64> + use<> {
    simulate::seeds(context.seed(), runs(context))
}

fn table(trials: &[SlotTrial]) -> AloneMeasures {
    let entry = |trial: &SlotTrial| {
        let team = trial.slot.teams.first()?;
        Some(((team.program, team.cores), *trial.measures.first()?))
    };
    trials.iter().filter_map(entry).collect()
}
