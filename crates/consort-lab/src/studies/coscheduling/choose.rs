//! A scheduler's choice, by trials that are simulated.

use super::alone::AloneMeasures;
use super::entrants::{ALPHA, RoundScheduler};
use consort_core::ProgramId;
use consort_core::coscheduling::{ChooserStep, CoscheduleSlot, ProgramMeasure, SlotTrial};
use consort_experiment::ExperimentError;
use consort_experiment::slots::SlotTrials;
use std::collections::BTreeMap;

/// Trials of one run, each simulated once.
pub(super) struct TrialCache<'a> {
    trials: SlotTrials<'a>,
    alone: &'a AloneMeasures,
    shared: BTreeMap<Vec<(ProgramId, u32)>, SlotTrial>,
}

/// Round that a scheduler ended with.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::studies) struct ChosenRound {
    pub slots: Vec<CoscheduleSlot>,
    /// Quanta that it took to find them: samples alone on all cores and on one, and trials.
    pub quanta: usize,
}

impl<'a> TrialCache<'a> {
    pub(super) fn new(trials: SlotTrials<'a>, alone: &'a AloneMeasures) -> Self {
        Self {
            trials,
            alone,
            shared: BTreeMap::new(),
        }
    }

    /// Runs a scheduler that chooses by trials; none where it does not.
    pub(super) fn choose(
        &mut self,
        entrant: &RoundScheduler,
    ) -> Result<Option<ChosenRound>, ExperimentError> {
        let (cores, alone) = (self.trials.suite().cores(), self.alone);
        choose(entrant, cores, alone, |slot| self.trial(slot))
    }

    fn trial(&mut self, slot: &CoscheduleSlot) -> Result<SlotTrial, ExperimentError> {
        if let [team] = slot.teams[..]
            && let Some(measure) = self.alone.get(&(team.program, team.cores))
        {
            return Ok(SlotTrial {
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
    entrant: &RoundScheduler,
    cores: u32,
    alone: &AloneMeasures,
    mut trial: impl FnMut(&CoscheduleSlot) -> Result<SlotTrial, E>,
) -> Result<Option<ChosenRound>, E> {
    let Some(mut chooser) = entrant.chooser() else {
        return Ok(None);
    };
    let on_all = alone.iter().filter(|((_, with), _)| *with == cores);
    let all = on_all.map(|((id, _), measure)| (*id, *measure));
    let is_linear = |&(id, _): &(ProgramId, ProgramMeasure)| {
        entrant.leaves_linear() && is_linear(alone, id, cores)
    };
    let (linear, others): (Vec<_>, Vec<_>) = all.partition(is_linear);
    let programs = linear.len() + others.len();
    let one = entrant.leaves_linear().then_some(1);
    let sizes: Vec<u32> = std::iter::once(cores).chain(one).collect();
    chooser.begin(cores, &others);
    let (mut last, mut tried) = (None, 0);
    let mut slots = loop {
        match chooser.next(last.as_ref()) {
            ChooserStep::Try(slot) => {
                last = Some(trial(&slot)?);
                tried += usize::from(!is_sample(&slot, &sizes));
            }
            ChooserStep::Done(slots) => break slots,
        }
    };
    slots.extend(
        linear
            .iter()
            .map(|(id, _)| CoscheduleSlot::alone(*id, cores)),
    );
    Ok(Some(ChosenRound {
        slots,
        quanta: programs * sizes.len() + tried,
    }))
}

/// Returns true for a slot of a program alone on a number of cores on which all are sampled.
fn is_sample(slot: &CoscheduleSlot, sizes: &[u32]) -> bool {
    matches!(slot.teams[..], [team] if sizes.contains(&team.cores))
}

/// Returns true where a program is within α of linear scaling on all cores.
fn is_linear(alone: &AloneMeasures, id: ProgramId, cores: u32) -> bool {
    let throughput = |cores| {
        alone
            .get(&(id, cores))
            .map_or(0.0, ProgramMeasure::throughput)
    };
    throughput(cores) >= (1.0 - ALPHA) * f64::from(cores) * throughput(1)
}
