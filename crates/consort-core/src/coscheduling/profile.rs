//! Measures of programs alone with every number of cores.

use super::measure::ProgramMeasure;
use super::slot::{CoscheduleSlot, SlotTrial};
use crate::ids::ProgramId;
use std::collections::BTreeMap;

/// Measures of programs alone, by number of cores.
#[derive(Clone, Debug, Default)]
pub struct KnownProfiles {
    cores: u32,
    known: BTreeMap<(ProgramId, u32), ProgramMeasure>,
}

impl KnownProfiles {
    /// Starts from the measures of programs alone on all `cores`; [`KnownProfiles::record_trial`]
    /// adds other numbers.
    pub fn new(cores: u32, alone: &[(ProgramId, ProgramMeasure)]) -> Self {
        let all = alone.iter().map(|&(id, measure)| ((id, cores), measure));
        Self {
            cores,
            known: all.collect(),
        }
    }

    /// Records a trial of one program alone.
    pub fn record_trial(&mut self, trial: &SlotTrial) {
        if let ([team], [measure]) = (&trial.slot.teams[..], &trial.measures[..]) {
            self.known.insert((team.program, team.cores), *measure);
        }
    }

    /// Slot of the next program with an unknown number of cores, fewest cores first.
    pub(super) fn missing_slot(&self, programs: &[ProgramId]) -> Option<CoscheduleSlot> {
        for &program in programs {
            for cores in 1..=self.cores {
                if !self.known.contains_key(&(program, cores)) {
                    return Some(CoscheduleSlot::alone(program, cores));
                }
            }
        }
        None
    }

    pub(super) fn measure(&self, program: ProgramId, cores: u32) -> Option<&ProgramMeasure> {
        self.known.get(&(program, cores))
    }

    /// Power that the machine always draws, W: the value at no cores of the line through a
    /// program's powers by number of cores. Programs that use relatively fewer cores the more they
    /// have bend their line down and raise its beginning, so the lowest value counts, and at least
    /// 0.
    pub fn idle_w(&self, programs: &[ProgramId]) -> f64 {
        let begins = programs.iter().filter_map(|&id| self.intercept_w(id));
        let lowest = begins.fold(f64::INFINITY, f64::min);
        if lowest.is_finite() {
            lowest.max(0.0)
        } else {
            0.0
        }
    }

    /// Power at no core by least squares; `None` for fewer than two numbers of cores.
    fn intercept_w(&self, program: ProgramId) -> Option<f64> {
        let known =
            (1..=self.cores).filter_map(|cores| Some((cores, self.measure(program, cores)?)));
        let points: Vec<(f64, f64)> = known.map(|(n, m)| (f64::from(n), m.power_w())).collect();
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
        let slope = sum(&|p| (p.0 - x) * (p.1 - y)) / sum(&|p| (p.0 - x) * (p.0 - x));
        (points.len() > 1).then_some(y - slope * x)
    }

    /// Number of cores with a program's lowest energy-delay, the fewest of equals. The program is
    /// charged for `idle_w`, which the machine always draws, by its share of the cores.
    pub fn best_cores(&self, program: ProgramId, idle_w: f64) -> u32 {
        let cost = |cores: u32| {
            let charged = self.charged_measure(program, cores, idle_w);
            charged.map_or(f64::INFINITY, |m| m.energy_delay(1))
        };
        let less = |a: &u32, b: &u32| cost(*a).total_cmp(&cost(*b));
        (1..=self.cores).min_by(less).unwrap_or(self.cores)
    }

    /// Measure of a program with `cores` cores, charged for `idle_w` by its share of the cores.
    fn charged_measure(
        &self,
        program: ProgramId,
        cores: u32,
        idle_w: f64,
    ) -> Option<ProgramMeasure> {
        let measure = self.measure(program, cores)?;
        let others = 1.0 - f64::from(cores) / f64::from(self.cores.max(1));
        let energy_j = measure.energy_j - idle_w * others * measure.time_ns / 1e9;
        Some(ProgramMeasure {
            energy_j: energy_j.max(0.0),
            ..*measure
        })
    }

    /// Instructions per s; 0 if unknown.
    pub(super) fn throughput(&self, program: ProgramId, cores: u32) -> f64 {
        self.measure(program, cores)
            .map_or(0.0, ProgramMeasure::throughput)
    }

    /// Throughput over that of one core; 0 if unknown.
    pub(super) fn speedup(&self, program: ProgramId, cores: u32) -> f64 {
        let one = self.throughput(program, 1);
        if one > 0.0 {
            self.throughput(program, cores) / one
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second with so many cores.
    fn trial(cores: u32, watts: f64) -> SlotTrial {
        let measure = ProgramMeasure {
            instructions: 1e9,
            cores,
            time_ns: 1e9,
            energy_j: watts,
            ..ProgramMeasure::default()
        };
        SlotTrial {
            slot: CoscheduleSlot::alone(ProgramId(1), cores),
            measures: vec![measure],
        }
    }

    /// By hand: 104, 108, 112 and 116 W are 100 W and 4 W per core.
    #[test]
    fn idle_power_is_the_intercept_of_powers() {
        let mut profile = KnownProfiles::new(4, &[]);
        assert_eq!(profile.idle_w(&[ProgramId(1)]), 0.0);
        for cores in 1..=4 {
            profile.record_trial(&trial(cores, 100.0 + 4.0 * f64::from(cores)));
        }
        assert!((profile.idle_w(&[ProgramId(1)]) - 100.0).abs() < 1e-9);
        // One core of four is charged a quarter of it.
        let charged = profile.charged_measure(ProgramId(1), 1, 100.0).unwrap();
        assert!((charged.energy_j - 29.0).abs() < 1e-9);
        let whole = profile.charged_measure(ProgramId(1), 4, 100.0).unwrap();
        assert!((whole.energy_j - 116.0).abs() < 1e-9);
    }

    #[test]
    fn one_point_has_no_intercept() {
        let mut profile = KnownProfiles::new(4, &[]);
        profile.record_trial(&trial(2, 50.0));
        assert_eq!(profile.intercept_w(ProgramId(1)), None);
    }
}
