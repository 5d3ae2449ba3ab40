//! Slots in turn, and how programs fare in them.

use super::phase::{Habits, Shift};
use super::samples::Samples;
use crate::coscheduling::{Measure, Slot, Trial, fairness, speedup, thread_throughput_gain};
use crate::ids::ProgramId;
use std::collections::BTreeMap;

/// Slots that run one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns {
    slots: Vec<Slot>,
    /// The slot that runs.
    at: usize,
    /// Trial of each slot when it last ran.
    last: Vec<Option<Trial>>,
    /// Behaviour of programs in the first round.
    habits: Habits,
    /// Quanta that slots have run.
    quanta: u64,
}

/// Figures of a program in its slot, relative to the gang.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fares {
    /// Energy-delay over that of the gang.
    pub(super) energy_delay: f64,
    /// Local speedup.
    pub(super) speedup: f64,
}

impl Turns {
    /// Begins with the first slot that has a program after this one, or else with the first.
    pub(super) fn new(slots: Vec<Slot>, after: Option<ProgramId>) -> Self {
        let is_next = |slot: &Slot| slot.teams.iter().any(|team| Some(team.program) > after);
        Self {
            last: vec![None; slots.len()],
            at: slots.iter().position(is_next).unwrap_or(0),
            slots,
            ..Self::default()
        }
    }

    /// The slot that runs; none without programs.
    pub(super) fn slot(&self) -> Option<&Slot> {
        self.slots.get(self.at)
    }

    /// All slots.
    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Takes the trial of the slot and goes on to the next. Returns true where a round is complete.
    pub(super) fn next(&mut self, trial: Trial) -> bool {
        self.quanta += u64::from(trial.slot.quanta());
        if let Some(last) = self.last.get_mut(self.at) {
            *last = Some(trial);
        }
        self.at = (self.at + 1) % self.slots.len().max(1);
        self.at == 0
    }

    /// Returns true where some programs share a slot.
    pub(super) fn shares(&self) -> bool {
        self.slots.iter().any(|slot| slot.teams.len() > 1)
    }

    /// Measure of each program when its slot last ran, with the trial.
    fn measured(&self) -> impl Iterator<Item = (ProgramId, &Trial, &Measure)> {
        self.last.iter().flatten().flat_map(members)
    }

    /// Figures of each program when its slot last ran, relative to the gang; programs that were not
    /// measured are left out.
    pub(super) fn fares(&self, gang: &Samples, cores: u32) -> BTreeMap<ProgramId, Fares> {
        let fares = |(id, trial, now): (ProgramId, &Trial, &Measure)| {
            let before = gang.of(id, cores)?;
            let quanta = trial.slot.quanta();
            let fair = fairness((now.cores, quanta), (before.cores, 1));
            let fares = Fares {
                energy_delay: now.energy_delay(quanta) / before.energy_delay(1),
                speedup: speedup(fair, thread_throughput_gain(now, before)),
            };
            Some((id, fares))
        };
        self.measured().filter_map(fares).collect()
    }

    /// Overall energy-delay over that of the gang: the mean over programs; none unless all were
    /// measured.
    pub(super) fn overall(&self, fares: &BTreeMap<ProgramId, Fares>) -> Option<f64> {
        let programs: usize = self.slots.iter().map(|slot| slot.teams.len()).sum();
        let all = !fares.is_empty() && fares.len() == programs;
        let sum = || fares.values().map(|f| f.energy_delay).sum::<f64>();
        all.then(|| sum() / programs as f64)
    }

    /// Returns a program that is in another phase than when it was measured, if any; see
    /// [`Habits::shift`].
    pub(super) fn shifted(
        &mut self,
        threshold: f64,
        gang: &Samples,
        cores: u32,
    ) -> Option<(ProgramId, Shift)> {
        let now = self.last.iter().flatten().flat_map(members);
        let now = now.map(|(id, _, measure)| (id, measure));
        self.habits.shift(now, (gang, cores), threshold)
    }

    /// Quanta that slots have run.
    pub(super) fn quanta(&self) -> u64 {
        self.quanta
    }
}

/// The programs of a trial.
fn members(trial: &Trial) -> impl Iterator<Item = (ProgramId, &Trial, &Measure)> {
    let teams = trial.slot.teams.iter().zip(&trial.measures);
    teams.map(move |(team, measure)| (team.program, trial, measure))
}
