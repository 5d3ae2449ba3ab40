//! Every program alone with every number of cores.

use super::{failed, quantum, runs, suite};
use crate::simulate::{self, each};
use crate::study::StudyError;
use consort_core::ProgramId;
use consort_core::coscheduling::{Measure, Profile, Slot, Trial};
use consort_experiment::Context;
use consort_experiment::slots::{Suite, Trials};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One run's measures by program and number of cores.
pub(in crate::studies) type Table = BTreeMap<(ProgramId, u32), Measure>;

/// All runs.
pub(in crate::studies) struct Alone {
    pub suite: Suite,
    pub runs: Vec<Table>,
}

impl Alone {
    /// Returns the runs of this context, made once.
    pub fn of(context: &Context<'_>) -> Result<Arc<Self>, StudyError> {
        context.made("programs alone, co-scheduling", || Self::make(context))
    }

    fn make(context: &Context<'_>) -> Result<Self, StudyError> {
        let suite = suite()?;
        let seeds: Vec<u64> = seeds(context).collect();
        let slots = suite.alone();
        let jobs: Vec<(u64, &Slot)> = { seeds.iter() }
            .flat_map(|&seed| slots.iter().map(move |slot| (seed, slot)))
            .collect();
        let told = each(context, &jobs, |(seed, slot)| {
            let told = Trials::new(&suite, quantum(context), *seed).run(slot);
            told.map_err(failed("programs alone"))
        })?;
        let runs = told.chunks(slots.len()).map(table).collect();
        Ok(Self { suite, runs })
    }

    /// Number of cores, in every run, of a program's lowest energy-delay, where it is charged, of
    /// the energy that the machine draws whichever programs run, the share of its cores.
    pub fn best_charged(&self, id: ProgramId) -> Vec<f64> {
        let (cores, ids): (u32, Vec<ProgramId>) = (self.suite.cores(), self.suite.ids().collect());
        let best = |table: &Table| {
            let profile = profile(cores, table);
            f64::from(profile.best(id, profile.idle_w(&ids)))
        };
        self.runs.iter().map(best).collect()
    }

    /// Returns a value of every run of a program with so many cores.
    pub fn values(&self, id: ProgramId, cores: u32, of: fn(&Measure) -> f64) -> Vec<f64> {
        let run = |table: &Table| table.get(&(id, cores)).map(of);
        self.runs.iter().filter_map(run).collect()
    }

    /// Mean over runs of a value of a program with so many cores.
    pub fn mean(&self, id: ProgramId, cores: u32, of: fn(&Measure) -> f64) -> f64 {
        let values = self.values(id, cores, of);
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }
}

/// Profile of programs alone in a run, as `greedy` is told it.
pub(in crate::studies) fn profile(cores: u32, table: &Table) -> Profile {
    let mut profile = Profile::new(cores, &[]);
    for (&(program, with), &measure) in table {
        profile.note(&Trial {
            slot: Slot::alone(program, with),
            measures: vec![measure],
        });
    }
    profile
}

/// Seeds of the runs.
pub(super) fn seeds(context: &Context<'_>) -> impl Iterator<Item = u64> + use<> {
    simulate::seeds(context.seed(), runs(context))
}

fn table(trials: &[Trial]) -> Table {
    let entry = |trial: &Trial| {
        let team = trial.slot.teams.first()?;
        Some(((team.program, team.cores), *trial.measures.first()?))
    };
    trials.iter().filter_map(entry).collect()
}
