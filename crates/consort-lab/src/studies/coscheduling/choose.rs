//! A scheduler's choice, by trials that are simulated.

use super::alone::Table;
use super::entrants::{ALPHA, Entrant};
use crate::experiment::ExperimentError;
use crate::experiment::slots::Trials;
use consort_core::ProgramId;
use consort_core::coscheduling::{Measure, Slot, Step, Trial};
use std::collections::BTreeMap;

/// Trials of one run, each simulated once.
pub(super) struct Known<'a> {
    trials: Trials<'a>,
    alone: &'a Table,
    shared: BTreeMap<Vec<(ProgramId, u32)>, Trial>,
}

/// What a scheduler ended with.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::studies) struct Chosen {
    pub slots: Vec<Slot>,
    /// Quanta that it took to find them: samples alone on all cores and on one, and trials.
    pub quanta: usize,
}

impl<'a> Known<'a> {
    pub(super) fn new(trials: Trials<'a>, alone: &'a Table) -> Self {
        Self {
            trials,
            alone,
            shared: BTreeMap::new(),
        }
    }

    fn cores(&self) -> u32 {
        self.trials.suite().cores()
    }

    /// Runs a scheduler that chooses by trials; none where it does not.
    pub(super) fn choose(&mut self, entrant: &Entrant) -> Result<Option<Chosen>, ExperimentError> {
        let Some(mut chooser) = entrant.chooser() else {
            return Ok(None);
        };
        let cores = self.cores();
        let alone = |id| Some((id, *self.alone.get(&(id, cores))?));
        let all: Vec<(ProgramId, Measure)> = self.trials.suite().ids().filter_map(alone).collect();
        let is_linear = |&(id, _): &(ProgramId, Measure)| entrant.is_fair() && self.is_linear(id);
        let (linear, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_linear);
        let samples = linear.len() + others.len();
        chooser.begin(cores, &others);
        let (mut last, mut tried) = (None, 0);
        let mut slots = loop {
            match chooser.next(last.as_ref()) {
                Step::Try(slot) => {
                    last = Some(self.trial(&slot)?);
                    tried += 1;
                }
                Step::Done(slots) => break slots,
            }
        };
        slots.extend(linear.iter().map(|(id, _)| Slot::alone(*id, cores)));
        let sizes = 1 + usize::from(entrant.is_fair());
        Ok(Some(Chosen {
            slots,
            quanta: samples * sizes + tried,
        }))
    }

    /// Whether a program is within α of linear scaling on all cores.
    fn is_linear(&self, id: ProgramId) -> bool {
        let throughput = |cores| {
            self.alone
                .get(&(id, cores))
                .map_or(0.0, Measure::throughput)
        };
        let cores = self.cores();
        throughput(cores) >= (1.0 - ALPHA) * f64::from(cores) * throughput(1)
    }

    fn trial(&mut self, slot: &Slot) -> Result<Trial, ExperimentError> {
        if let [team] = slot.teams[..]
            && let Some(measure) = self.alone.get(&(team.program, team.cores))
        {
            return Ok(Trial {
                slot: slot.clone(),
                measures: vec![*measure],
            });
        }
        let teams = slot.teams.iter().map(|team| (team.program, team.cores));
        let key: Vec<(ProgramId, u32)> = teams.collect();
        if let Some(trial) = self.shared.get(&key) {
            return Ok(trial.clone());
        }
        let trial = self.trials.run(slot)?;
        self.shared.insert(key, trial.clone());
        Ok(trial)
    }
}
