//! Watch for programs that no longer behave as when their mapping was chosen.

use super::active_programs::ActivePrograms;
use crate::signal::Signal;

/// Quanta that the reference is the mean of, and that a change must last.
const QUANTA: u32 = 8;
/// Relative change of a program's instructions per s of CPU time that is a new phase.
const CHANGE: f64 = 0.3;

/// Watches the speed of programs.
#[derive(Clone, Debug, Default)]
pub(super) struct SpeedMonitor {
    /// Mean speed by program, instructions per ns of CPU time.
    reference: Vec<f64>,
    /// Quanta that the reference is the mean of, so far.
    quanta: u32,
    /// Quanta in succession that differed.
    strayed: u32,
}

impl SpeedMonitor {
    /// Takes a quantum in. Returns true where a new phase has begun.
    pub(super) fn record_quantum(&mut self, crowd: &ActivePrograms<'_>) -> bool {
        let speeds: Vec<f64> = crowd.groups.iter().map(speed).collect();
        if self.quanta < QUANTA {
            self.update_reference(&speeds);
            return false;
        }
        let strays = |(speed, reference): (&f64, &f64)| {
            (speed - reference).abs() > CHANGE * reference.max(f64::MIN_POSITIVE)
        };
        let strayed = speeds.iter().zip(&self.reference).any(strays);
        self.strayed = if strayed { self.strayed + 1 } else { 0 };
        self.strayed >= QUANTA
    }

    fn update_reference(&mut self, speeds: &[f64]) {
        self.quanta += 1;
        self.reference.resize(speeds.len(), 0.0);
        for (mean, speed) in self.reference.iter_mut().zip(speeds) {
            *mean += (speed - *mean) / f64::from(self.quanta);
        }
    }
}

fn speed(group: &super::active_programs::ActiveProgram<'_>) -> f64 {
    let sums = group
        .sum(Signal::Instructions)
        .zip(group.sum(Signal::CpuTime));
    sums.map_or(0.0, |(instructions, cpu_ns)| {
        if cpu_ns > 0.0 {
            instructions / cpu_ns
        } else {
            0.0
        }
    })
}
