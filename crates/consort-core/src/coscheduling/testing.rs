//! A made-up machine on which the outcome of a slot is easy to work out by hand.

use super::measure::ProgramMeasure;
use super::slot::{CoscheduleSlot, SlotTrial};
use crate::ids::ProgramId;

/// A program of the made-up machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Number of cores beyond which the program gains nothing.
    pub(super) scaling: f64,
    /// Weight by which it slows others down, and they it: each program runs at 1 / (1 + the weights
    /// of the others).
    pub(super) weight: f64,
}

/// Programs 1 to n on a machine that always draws 1 W per core.
pub(super) struct World {
    pub(super) cores: u32,
    pub(super) loads: Vec<Load>,
}

pub(super) fn id(index: usize) -> ProgramId {
    ProgramId(index as u32 + 1)
}

impl World {
    /// Runs a slot for a second.
    pub(super) fn run(&self, slot: &CoscheduleSlot) -> SlotTrial {
        let load = |program: ProgramId| self.loads[program.0 as usize - 1];
        let measure = |team: &super::slot::ProgramTeam| {
            let own = load(team.program);
            let others = slot.teams.iter().filter(|t| t.program != team.program);
            let weight: f64 = others.map(|t| load(t.program).weight).sum();
            let cores = f64::from(team.cores);
            ProgramMeasure {
                instructions: 1e9 * cores.min(own.scaling) / (1.0 + weight),
                cycles: 1e9 * cores,
                llc_accesses: 1e6,
                llc_misses: 1e6 * own.weight.min(1.0),
                bus_busy_cycles: 1e9 * cores * own.weight.min(1.0),
                cores: team.cores,
                time_ns: 1e9,
                energy_j: cores,
                ..ProgramMeasure::default()
            }
        };
        SlotTrial {
            slot: slot.clone(),
            measures: slot.teams.iter().map(measure).collect(),
        }
    }

    /// Measure of each program alone on all cores, in the order of their numbers.
    pub(super) fn rising(&self) -> Vec<(ProgramId, ProgramMeasure)> {
        let alone = |i| {
            (
                id(i),
                self.run(&CoscheduleSlot::alone(id(i), self.cores)).measures[0],
            )
        };
        (0..self.loads.len()).map(alone).collect()
    }
}
