//! Objectives that compare rounds of several programs.

use super::measure::ProgramMeasure;
use super::slot::SlotTrial;
use crate::ids::ProgramId;
use std::collections::BTreeMap;

/// Value of a round: a mean over programs, relative to the gang.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundObjective {
    /// Overall energy-delay, as in the thread chooser: the mean of energy-delay relative to the
    /// gang. Lower is better.
    #[default]
    EnergyDelay,
    /// Mean of throughput over a round relative to the gang. Its sum over programs is system
    /// throughput with the gang in the role of running alone. Higher is better.
    Throughput,
    /// Geometric mean of the same, which is that of the programs' local speedups: fairness times the
    /// gain of thread throughput. Higher is better.
    Speedup,
}

impl RoundObjective {
    /// Names of the objectives, for error texts.
    pub const NAMES: &'static str = "energy-delay, throughput or speedup";

    /// Finds an objective by name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "energy-delay" => Some(Self::EnergyDelay),
            "throughput" => Some(Self::Throughput),
            "speedup" => Some(Self::Speedup),
            _ => None,
        }
    }

    /// A program's cost, lower is better, of `measure` in a slot of `quanta` quanta, compared with
    /// `gang` alone on all cores.
    pub(super) fn cost(self, measure: &ProgramMeasure, quanta: u32, gang: &ProgramMeasure) -> f64 {
        match self {
            Self::EnergyDelay => {
                relative_amount(measure.energy_delay(quanta), gang.energy_delay(1))
            }
            Self::Throughput => -relative_throughput(measure, quanta, gang),
            Self::Speedup => -libm::log(relative_throughput(measure, quanta, gang)),
        }
    }

    /// Returns true if a program with this cost is no worse off than in the gang.
    pub(super) fn is_no_worse(self, cost: f64) -> bool {
        match self {
            Self::EnergyDelay => cost <= 1.0,
            Self::Throughput => cost <= -1.0,
            Self::Speedup => cost <= 0.0,
        }
    }

    /// Converts a mean cost to the value in reports.
    pub(super) fn value(self, cost: f64) -> f64 {
        match self {
            Self::EnergyDelay => cost,
            Self::Throughput => -cost,
            Self::Speedup => libm::exp(-cost),
        }
    }

    /// Value of the trials of all slots of a round: the mean over the programs. Programs without a
    /// measure alone on all cores are left out.
    pub fn round_value(
        self,
        trials: &[SlotTrial],
        gang: &BTreeMap<ProgramId, ProgramMeasure>,
    ) -> f64 {
        let mut costs: Vec<f64> = Vec::new();
        for trial in trials {
            for (team, measure) in trial.slot.teams.iter().zip(&trial.measures) {
                if let Some(gang) = gang.get(&team.program) {
                    costs.push(self.cost(measure, trial.slot.quanta(), gang));
                }
            }
        }
        self.value(costs.iter().sum::<f64>() / costs.len().max(1) as f64)
    }
}

/// Throughput over a round relative to the gang's.
fn relative_throughput(measure: &ProgramMeasure, quanta: u32, gang: &ProgramMeasure) -> f64 {
    let ours = measure.throughput() * f64::from(quanta.max(1));
    relative_amount(ours, gang.throughput())
}

/// Ratio of two amounts; 1 if they are equal, so that a program that does nothing in both is as
/// well off in both.
fn relative_amount(ours: f64, theirs: f64) -> f64 {
    if ours == theirs { 1.0 } else { ours / theirs }
}

#[cfg(test)]
mod tests {
    use super::super::slot::{CoscheduleSlot, ProgramTeam};
    use super::super::testing::id;
    use super::*;

    fn measure(instructions: f64, energy_j: f64) -> ProgramMeasure {
        ProgramMeasure {
            instructions,
            energy_j,
            time_ns: 1e9,
            ..ProgramMeasure::default()
        }
    }

    /// A pair: the first is half as fast as alone at half the energy, the second as fast.
    fn pair() -> (SlotTrial, BTreeMap<ProgramId, ProgramMeasure>) {
        let team = |i| ProgramTeam {
            program: id(i),
            cores: 4,
        };
        let trial = SlotTrial {
            slot: CoscheduleSlot {
                teams: vec![team(0), team(1)],
            },
            measures: vec![measure(1e9, 50.0), measure(2e9, 50.0)],
        };
        let gang = (0..2).map(|i| (id(i), measure(2e9, 100.0)));
        (trial, gang.collect())
    }

    #[test]
    fn two_quanta_make_up_for_half_the_speed() {
        let (trial, gang) = pair();
        // 1 and 2 times the work in a round.
        let trials = [trial];
        assert_eq!(RoundObjective::Throughput.round_value(&trials, &gang), 1.5);
        let speedup = RoundObjective::Speedup.round_value(&trials, &gang);
        assert!((speedup - core::f64::consts::SQRT_2).abs() < 1e-12);
    }

    #[test]
    fn overall_energy_delay_is_relative_to_the_gang() {
        let (trial, gang) = pair();
        // First: as much energy per instruction, as much time. Second: half of both.
        let overall = RoundObjective::EnergyDelay.round_value(&[trial], &gang);
        assert!((overall - (1.0 + 0.25) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn program_that_does_nothing_costs_one() {
        let nothing = ProgramMeasure::default();
        assert_eq!(RoundObjective::EnergyDelay.cost(&nothing, 2, &nothing), 1.0);
    }

    #[test]
    fn objectives_are_known_by_name() {
        assert_eq!(
            RoundObjective::from_name("throughput"),
            Some(RoundObjective::Throughput)
        );
        assert_eq!(RoundObjective::from_name("speed"), None);
    }
}
