//! Slowdowns by the fast engine.

use super::judge::SlowdownTable;
use super::{MACHINE, Measurement};
use crate::simulate::chips;
use crate::validate::GroupInputs;
use crate::validate::data::ValidateError;
use consort_experiment::{Contender, Experiment};
use consort_sim::chip::Chip;
use consort_sim::program::ProgramSpec;
use consort_sim::workload::{ProgramInstance, Workload};
use std::sync::Arc;

/// Time of a victim's work alone, quick and in full, s: several times the longest program.
const ALONE_S: (f64, f64) = (0.25, 1.0);

/// Predictions of all measured pairs.
pub(super) struct Predictions {
    pub(super) slowdowns: SlowdownTable,
    /// Instructions per cycle of each victim alone.
    pub(super) victim_speeds: Vec<f64>,
}

impl Predictions {
    /// Simulates each victim next to each co-runner, which starts again when it ends. `pinned` puts the
    /// two on CPUs 0 and 1, which are one core.
    pub(super) fn simulate(
        measured: &Measurement,
        inputs: &GroupInputs<'_>,
    ) -> Result<Self, ValidateError> {
        let chip = chips::chip(MACHINE)?;
        let truth = &measured.slowdowns;
        let pairs: Vec<(usize, usize)> = truth.cells().map(|(v, o, _)| (v, o)).collect();
        let outcomes = inputs.map(&pairs, |&(victim, other)| {
            let programs = [&measured.victims[victim], &measured.co_runners[other]];
            run_pair(&chip, programs, inputs)
        })?;
        let mut slowdowns = truth.like();
        let mut victim_speeds = vec![0.0; truth.victims.len()];
        for (&(victim, other), (slowdown, speed)) in pairs.iter().zip(outcomes) {
            slowdowns.set_cell(victim, other, slowdown);
            victim_speeds[victim] = speed;
        }
        Ok(Self {
            slowdowns,
            victim_speeds,
        })
    }
}

/// Slowdown of the first program, and its instructions per cycle alone.
fn run_pair(
    chip: &Arc<Chip>,
    programs: [&Arc<ProgramSpec>; 2],
    inputs: &GroupInputs<'_>,
) -> Result<(f64, f64), ValidateError> {
    let entries = programs.map(|program| ProgramInstance {
        name: program.name.clone(),
        program: Arc::clone(program),
        threads: 1,
        start_ms: 0.0,
    });
    let workload = Workload {
        text: programs.map(|program| program.name.as_str()).join("+"),
        entries: entries.into(),
    };
    let (quick, full) = ALONE_S;
    let alone_s = inputs.context.by_scale(quick, full);
    let experiment = Experiment::new(chip, workload, alone_s);
    let seed = inputs.context.seed();
    let work = experiment.measure_work(seed)?;
    let run = experiment.run(&Contender::new("pinned", "linux")?, &work, seed, None)?;
    let hz = chip.frequency_hz(chip.places()[0]);
    let speed = work[0].instructions / (work[0].alone_s * hz);
    Ok((run.programs[0].slowdown, speed))
}
