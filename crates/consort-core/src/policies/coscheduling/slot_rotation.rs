//! Slots in turn, and how programs fare in them.

use super::alone_measure_table::AloneMeasureTable;
use super::phase::{PhaseDetector, PhaseShift};
use crate::coscheduling::{
    CoscheduleSlot, ProgramMeasure, SlotTrial, fairness, speedup, thread_throughput_gain,
};
use crate::ids::ProgramId;
use std::collections::BTreeMap;

/// Slots that run one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotRotation {
    slots: Vec<CoscheduleSlot>,
    /// The slot that runs.
    at: usize,
    /// Trial of each slot when it last ran.
    last: Vec<Option<SlotTrial>>,
    /// Behaviour of programs in the first round.
    habits: PhaseDetector,
    /// Quanta that slots have run.
    quanta: u64,
}

/// Figures of a program in its slot, relative to the gang.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GangComparison {
    /// Energy-delay over that of the gang.
    pub(super) energy_delay: f64,
    /// Local speedup.
    pub(super) speedup: f64,
}

impl SlotRotation {
    /// Begins with the first slot that has a program after this one, or else with the first.
    pub(super) fn new(slots: Vec<CoscheduleSlot>, after: Option<ProgramId>) -> Self {
        let is_next =
            |slot: &CoscheduleSlot| slot.teams.iter().any(|team| Some(team.program) > after);
        Self {
            last: vec![None; slots.len()],
            at: slots.iter().position(is_next).unwrap_or(0),
            slots,
            ..Self::default()
        }
    }

    /// The slot that runs; none without programs.
    pub(super) fn slot(&self) -> Option<&CoscheduleSlot> {
        self.slots.get(self.at)
    }

    /// All slots.
    pub(super) fn slots(&self) -> &[CoscheduleSlot] {
        &self.slots
    }

    /// Takes the trial of the slot and goes on to the next. Returns true where a round is complete.
    pub(super) fn finish_slot(&mut self, trial: SlotTrial) -> bool {
        self.quanta += u64::from(trial.slot.quanta());
        if let Some(last) = self.last.get_mut(self.at) {
            *last = Some(trial);
        }
        self.at = (self.at + 1) % self.slots.len().max(1);
        self.at == 0
    }

    /// Returns true where some programs share a slot.
    pub(super) fn has_shared_slots(&self) -> bool {
        self.slots.iter().any(|slot| slot.teams.len() > 1)
    }

    /// Measure of each program when its slot last ran, with the trial.
    fn program_measures(&self) -> impl Iterator<Item = (ProgramId, &SlotTrial, &ProgramMeasure)> {
        self.last.iter().flatten().flat_map(trial_programs)
    }

    /// Figures of each program when its slot last ran, relative to the gang; programs that were not
    /// measured are left out.
    pub(super) fn compare_with_gang(
        &self,
        gang: &AloneMeasureTable,
        cores: u32,
    ) -> BTreeMap<ProgramId, GangComparison> {
        let fares = |(id, trial, now): (ProgramId, &SlotTrial, &ProgramMeasure)| {
            let before = gang.get(id, cores)?;
            let quanta = trial.slot.quanta();
            let fair = fairness((now.cores, quanta), (before.cores, 1));
            let fares = GangComparison {
                energy_delay: now.energy_delay(quanta) / before.energy_delay(1),
                speedup: speedup(fair, thread_throughput_gain(now, before)),
            };
            Some((id, fares))
        };
        self.program_measures().filter_map(fares).collect()
    }

    /// Overall energy-delay over that of the gang: the mean over programs; none unless all were
    /// measured.
    pub(super) fn overall_energy_delay(
        &self,
        fares: &BTreeMap<ProgramId, GangComparison>,
    ) -> Option<f64> {
        let programs: usize = self.slots.iter().map(|slot| slot.teams.len()).sum();
        let all = !fares.is_empty() && fares.len() == programs;
        let sum = || fares.values().map(|f| f.energy_delay).sum::<f64>();
        all.then(|| sum() / programs as f64)
    }

    /// Returns a program that is in another phase than when it was measured, if any; see
    /// [`PhaseDetector::find_shift`].
    pub(super) fn find_phase_shift(
        &mut self,
        threshold: f64,
        gang: &AloneMeasureTable,
        cores: u32,
    ) -> Option<(ProgramId, PhaseShift)> {
        let now = self.last.iter().flatten().flat_map(trial_programs);
        let now = now.map(|(id, _, measure)| (id, measure));
        self.habits.find_shift(now, (gang, cores), threshold)
    }

    /// Quanta that slots have run.
    pub(super) fn quanta(&self) -> u64 {
        self.quanta
    }
}

/// The programs of a trial.
fn trial_programs(
    trial: &SlotTrial,
) -> impl Iterator<Item = (ProgramId, &SlotTrial, &ProgramMeasure)> {
    let teams = trial.slot.teams.iter().zip(&trial.measures);
    teams.map(move |(team, measure)| (team.program, trial, measure))
}
