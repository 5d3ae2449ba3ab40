//! Slots in turn, and whether that is still right.

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
    /// What came of each slot when it last ran.
    last: Vec<Option<Trial>>,
    /// Miss rates of the first round.
    miss_rates: BTreeMap<ProgramId, f64>,
}

/// How a program fares in its slot, relative to the gang.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fares {
    /// Energy-delay over that of the gang.
    pub(super) energy_delay: f64,
    /// Local speedup.
    pub(super) speedup: f64,
}

impl Turns {
    /// Begins with the first slot.
    pub(super) fn new(slots: Vec<Slot>) -> Self {
        Self {
            last: vec![None; slots.len()],
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

    /// Takes what came of the slot and goes on to the next; whether a round is complete.
    pub(super) fn next(&mut self, trial: Trial) -> bool {
        if let Some(last) = self.last.get_mut(self.at) {
            *last = Some(trial);
        }
        self.at = (self.at + 1) % self.slots.len().max(1);
        self.at == 0
    }

    /// Whether programs share slots.
    pub(super) fn shares(&self) -> bool {
        self.slots.iter().any(|slot| slot.teams.len() > 1)
    }

    /// What each program did when its slot last ran.
    fn measured(&self) -> impl Iterator<Item = (ProgramId, &Trial, &Measure)> {
        self.last.iter().flatten().flat_map(members)
    }

    /// How a program fared when its slot last ran.
    pub(super) fn fares(&self, program: ProgramId, gang: &Samples, cores: u32) -> Option<Fares> {
        let mut all = self.measured();
        let (_, trial, now) = all.find(|(id, ..)| *id == program)?;
        let before = gang.of(program, cores)?;
        let quanta = trial.slot.quanta();
        let fair = fairness((now.cores, quanta), (before.cores, 1));
        Some(Fares {
            energy_delay: now.energy_delay(quanta) / before.energy_delay(1),
            speedup: speedup(fair, thread_throughput_gain(now, before)),
        })
    }

    /// Overall energy-delay over that of the gang: the mean over programs.
    pub(super) fn overall(&self, gang: &Samples, cores: u32) -> Option<f64> {
        let of = |slot: &Slot| slot.teams.iter().map(|t| t.program).collect::<Vec<_>>();
        let programs: Vec<ProgramId> = self.slots.iter().flat_map(of).collect();
        let fares = programs.iter().map(|&id| self.fares(id, gang, cores));
        let all: Option<Vec<Fares>> = fares.collect();
        let all = all.filter(|all| !all.is_empty())?;
        Some(all.iter().map(|f| f.energy_delay).sum::<f64>() / all.len() as f64)
    }

    /// A program whose miss rate has shifted by more than `threshold` since the first round, which
    /// is the one that ends now where there was none.
    pub(super) fn shifted(&mut self, threshold: f64) -> Option<(ProgramId, f64)> {
        let rate = |(id, _, measure): (ProgramId, _, &Measure)| (id, measure.llc_miss_rate());
        let now: BTreeMap<ProgramId, f64> = self.measured().map(rate).collect();
        if self.miss_rates.is_empty() {
            self.miss_rates = now;
            return None;
        }
        let shift = |(id, rate): (&ProgramId, f64)| {
            let first = self.miss_rates.get(id)?;
            Some((*id, rate - first))
        };
        let mut shifts = now.iter().filter_map(|(id, rate)| shift((id, *rate)));
        shifts.find(|(_, shift)| shift.abs() > threshold)
    }
}

/// The programs of a trial.
fn members(trial: &Trial) -> impl Iterator<Item = (ProgramId, &Trial, &Measure)> {
    let teams = trial.slot.teams.iter().zip(&trial.measures);
    teams.map(move |(team, measure)| (team.program, trial, measure))
}
