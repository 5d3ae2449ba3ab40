//! A scheduler's choice, by trials that are simulated.

use super::alone::Table;
use super::entrants::{ALPHA, Entrant};
use consort_core::ProgramId;
use consort_core::coscheduling::{Measure, Slot, Step, Trial};
use consort_experiment::ExperimentError;
use consort_experiment::slots::Trials;
use std::collections::BTreeMap;

/// Trials of one run, each simulated once.
pub(super) struct Known<'a> {
    trials: Trials<'a>,
    alone: &'a Table,
    shared: BTreeMap<Vec<(ProgramId, u32)>, Trial>,
}

/// Round that a scheduler ended with.
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

    /// Runs a scheduler that chooses by trials; none where it does not.
    pub(super) fn choose(&mut self, entrant: &Entrant) -> Result<Option<Chosen>, ExperimentError> {
        let (cores, alone) = (self.trials.suite().cores(), self.alone);
        choose(entrant, cores, alone, |slot| self.trial(slot))
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

/// Runs a scheduler that chooses by trials among the programs that are known alone; none where it
/// does not.
///
/// # Errors
/// Those of the trials.
pub(in crate::studies) fn choose<E>(
    entrant: &Entrant,
    cores: u32,
    alone: &Table,
    mut trial: impl FnMut(&Slot) -> Result<Trial, E>,
) -> Result<Option<Chosen>, E> {
    let Some(mut chooser) = entrant.chooser() else {
        return Ok(None);
    };
    let on_all = alone.iter().filter(|((_, with), _)| *with == cores);
    let all = on_all.map(|((id, _), measure)| (*id, *measure));
    let is_linear =
        |&(id, _): &(ProgramId, Measure)| entrant.leaves_linear() && is_linear(alone, id, cores);
    let (linear, others): (Vec<_>, Vec<_>) = all.partition(is_linear);
    let programs = linear.len() + others.len();
    let one = entrant.leaves_linear().then_some(1);
    let sizes: Vec<u32> = std::iter::once(cores).chain(one).collect();
    chooser.begin(cores, &others);
    let (mut last, mut tried) = (None, 0);
    let mut slots = loop {
        match chooser.next(last.as_ref()) {
            Step::Try(slot) => {
                last = Some(trial(&slot)?);
                tried += usize::from(!is_sample(&slot, &sizes));
            }
            Step::Done(slots) => break slots,
        }
    };
    slots.extend(linear.iter().map(|(id, _)| Slot::alone(*id, cores)));
    Ok(Some(Chosen {
        slots,
        quanta: programs * sizes.len() + tried,
    }))
}

/// Returns true for a slot of a program alone on a number of cores on which all are sampled.
fn is_sample(slot: &Slot, sizes: &[u32]) -> bool {
    matches!(slot.teams[..], [team] if sizes.contains(&team.cores))
}

/// Returns true where a program is within α of linear scaling on all cores.
fn is_linear(alone: &Table, id: ProgramId, cores: u32) -> bool {
    let throughput = |cores| alone.get(&(id, cores)).map_or(0.0, Measure::throughput);
    throughput(cores) >= (1.0 - ALPHA) * f64::from(cores) * throughput(1)
}
