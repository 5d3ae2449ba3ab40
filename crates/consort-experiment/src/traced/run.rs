//! Programs alone and together, by the reference.

use super::TracedProgram;
use consort_core::PuId;
use consort_reference::{
    Reference, ReferenceError, RunLength, SlotCause, ThreadOutcome, TracePlacement,
};
use consort_sim::chip::Chip;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;
use thiserror::Error;

/// Amount that is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedLength {
    /// Instructions of each program before measurement.
    pub warm_up: u64,
    /// Instructions of each program that are measured.
    pub measured: u64,
}

/// Reason why programs cannot be run.
#[derive(Debug, Error)]
pub enum TracedRunError {
    /// More programs than PUs.
    #[error("{programs} programs on {pus} PUs; the reference runs one program per PU")]
    TooMany {
        /// Programs.
        programs: usize,
        /// PUs.
        pus: usize,
    },
    /// The reference's own reason.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
}

/// One program of a run.
#[derive(Clone, Debug, Serialize)]
pub struct ProgramRun {
    /// Its name.
    pub name: String,
    /// PU on which it ran.
    pub pu: u32,
    /// Time of the measured instructions alone, s.
    pub alone_s: f64,
    /// Time of the measured instructions beside the others, s.
    pub together_s: f64,
    /// The latter over the former.
    pub slowdown: f64,
    /// Instructions measured.
    pub instructions: f64,
    /// Instructions per cycle together.
    pub ipc: f64,
    /// Energy; the reference knows none.
    pub energy_j: Option<f64>,
    /// Cycles per instruction by cause, alone.
    pub stack_alone: BTreeMap<&'static str, f64>,
    /// Cycles per instruction by cause, together.
    pub stack: BTreeMap<&'static str, f64>,
}

/// Programs that ran together.
#[derive(Clone, Debug, Serialize)]
pub struct TracedRun {
    /// `reference`.
    pub fidelity: &'static str,
    /// Seed of what is drawn.
    pub seed: u64,
    /// Programs by place.
    pub programs: Vec<ProgramRun>,
    /// System throughput.
    pub stp: f64,
    /// Average normalised turnaround time.
    pub antt: f64,
    /// Largest slowdown over smallest.
    pub unfairness: f64,
    /// Time of the slowest program, s.
    pub makespan_s: f64,
    /// Instructions executed in all, those before measurement included.
    pub simulated_instructions: f64,
    /// Time that the run took here, s.
    pub host_s: f64,
    /// Instructions executed per second here, 10^6.
    pub simulated_minstr_per_host_s: f64,
}

/// Runs programs alone and together, one per PU from the first.
///
/// # Errors
/// More programs than PUs, programs without instructions.
pub fn run_together(
    chip: &Chip,
    programs: &[TracedProgram],
    extent: TracedLength,
    seed: u64,
) -> Result<TracedRun, TracedRunError> {
    let pus = chip.places().len();
    if programs.len() > pus {
        let programs = programs.len();
        return Err(TracedRunError::TooMany { programs, pus });
    }
    let start = Instant::now();
    let place = |(pu, program)| TracePlacement {
        pu: PuId(pu),
        space: pu,
        program,
    };
    let placements: Vec<TracePlacement<'_>> = (0..)
        .zip(programs)
        .map(|(pu, p)| place((pu, p as _)))
        .collect();
    let length = RunLength {
        warm_up: extent.warm_up,
        measured: extent.measured,
    };
    let run = |placed: &[TracePlacement<'_>]| Reference::new(chip, placed, seed)?.run(length);
    let alone: Vec<ThreadOutcome> = { placements.iter() }
        .map(|one| Ok(run(std::slice::from_ref(one))?.threads.swap_remove(0)))
        .collect::<Result<_, ReferenceError>>()?;
    let together = run(&placements)?.threads;
    let rows = programs.iter().zip(alone.iter().zip(&together)).zip(0..);
    let rows = rows.map(|((program, both), pu)| program_run(chip, program, both, pu));
    let runs = 2 * programs.len() as u64;
    let executed = (runs * (extent.warm_up + extent.measured)) as f64;
    Ok(traced_run(
        rows.collect(),
        seed,
        executed,
        start.elapsed().as_secs_f64(),
    ))
}

fn program_run(
    chip: &Chip,
    program: &TracedProgram,
    (alone, together): (&ThreadOutcome, &ThreadOutcome),
    pu: u32,
) -> ProgramRun {
    let hz = chip.frequency_hz(chip.places()[pu as usize]);
    let seconds = |outcome: &ThreadOutcome| outcome.cycles as f64 / hz;
    ProgramRun {
        name: program.name().to_owned(),
        pu,
        alone_s: seconds(alone),
        together_s: seconds(together),
        slowdown: together.cycles as f64 / alone.cycles.max(1) as f64,
        instructions: together.instructions as f64,
        ipc: together.ipc(),
        energy_j: None,
        stack_alone: stack(alone),
        stack: stack(together),
    }
}

fn stack(outcome: &ThreadOutcome) -> BTreeMap<&'static str, f64> {
    let instructions = outcome.instructions.max(1) as f64;
    let of = |cause: SlotCause| (cause.name(), outcome.stack.cycles(cause) / instructions);
    SlotCause::ALL.map(of).into()
}

fn traced_run(programs: Vec<ProgramRun>, seed: u64, executed: f64, host_s: f64) -> TracedRun {
    let slowdowns = || programs.iter().map(|p| p.slowdown);
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let largest = most(&mut slowdowns());
    let smallest = 1.0 / most(&mut slowdowns().map(f64::recip));
    TracedRun {
        fidelity: "reference",
        seed,
        stp: slowdowns().map(f64::recip).sum(),
        antt: slowdowns().sum::<f64>() / programs.len().max(1) as f64,
        unfairness: largest / smallest,
        makespan_s: most(&mut programs.iter().map(|p| p.together_s)),
        programs,
        simulated_instructions: executed,
        host_s,
        simulated_minstr_per_host_s: executed / 1e6 / host_s.max(f64::MIN_POSITIVE),
    }
}
