//! Random workloads run to their end: nothing is lost, however time is divided.

use super::{PresetCatalog, ROUNDING, check_law, seeded_random};
use crate::alone::{instance, run_once_settings};
use crate::check::ValidationCheck;
use crate::error::ValidateError;
use crate::group::GroupInputs;
use consort_core::Machine;
use consort_experiment::{NullSampleSource, build_machine};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::contention::Solution;
use consort_sim::engine::{Observer, RunSegment, SimulatedProgram};
use rand::RngExt;
use rand::seq::IndexedRandom;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Quanta that divide time in unlike ways, ns.
const QUANTA_NS: [u64; 2] = [10_000_000, 1_300_000];
/// Programs of a workload at most.
const MOST_PROGRAMS: usize = 16;
/// Work of each program, instructions.
const WORK: f64 = 2e7;

/// Relative slack of times: events fall on whole picoseconds and are a microsecond or more apart.
const CLOCK: f64 = 1e-6;

/// Sums of a run.
#[derive(Clone, Debug, Default, PartialEq)]
struct WorkloadSums {
    seconds: f64,
    joules: f64,
    /// Instructions of each instance.
    instructions: Vec<f64>,
    /// Largest relative difference between a thread's stack and its cycles of progress.
    stack: f64,
    solves: SolveCounts,
}

/// Counts of the solver in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct SolveCounts {
    all: u64,
    open: u64,
    residual: f64,
}

/// Figures that a case shows.
#[derive(Clone, Copy, Debug, Default)]
struct WorkloadDeviations {
    work: f64,
    energy: f64,
    undone: f64,
    stack: f64,
    other_bits: bool,
    solves: SolveCounts,
}

pub(super) fn checks(
    inputs: &GroupInputs<'_>,
    world: &PresetCatalog,
) -> Result<Vec<ValidationCheck>, ValidateError> {
    let each = inputs.context.by_scale(1, 8);
    let cases = world.cases(each, inputs.context.seed(), 2);
    let shown = inputs.context.map(&cases, |&(machine, seed)| {
        compare_runs(world, machine, seed)
    })?;
    let shown: Vec<WorkloadDeviations> = shown.into_iter().collect::<Result<_, _>>()?;
    let n = shown.len();
    let worst = |of: fn(&WorkloadDeviations) -> f64| shown.iter().map(of).fold(0.0, f64::max);
    let other = shown.iter().filter(|s| s.other_bits).count() as f64;
    let all: u64 = shown.iter().map(|s| s.solves.all).sum();
    let open: u64 = shown.iter().map(|s| s.solves.open).sum();
    let residual = format!("worst residual {:.1e}", worst(|s| s.solves.residual));
    let runs = format!("worst of {n} workloads");
    let law_of = |id, what: &str, ours| check_law(id, format!("{what}, {runs}"), ROUNDING, ours);
    Ok(vec![
        law_of(
            "work",
            "work done against work given, relative",
            worst(|s| s.undone),
        ),
        law_of(
            "work-splits",
            "work and time under other quanta, relative",
            worst(|s| s.work),
        ),
        law_of(
            "energy-splits",
            "energy under other quanta, relative",
            worst(|s| s.energy),
        ),
        check_law(
            "stack-cycles",
            format!("stack against cycles of progress, relative, {runs}"),
            CLOCK,
            worst(|s| s.stack),
        ),
        check_law(
            "same-seed",
            format!("of {n} workloads, those that repeat with other bits"),
            0.0,
            other,
        ),
        check_law(
            "converged-runs",
            format!("of {all} solutions in runs, those that did not converge"),
            0.0,
            open as f64,
        )
        .with_note(residual),
    ])
}

fn compare_runs(
    world: &PresetCatalog,
    machine: usize,
    seed: u64,
) -> Result<WorkloadDeviations, ValidateError> {
    let chip = &world.chips[machine];
    let work = workload(world, chip, seed);
    let first = run_workload(chip, &work, seed, QUANTA_NS[0])?;
    let again = run_workload(chip, &work, seed, QUANTA_NS[0])?;
    let split = run_workload(chip, &work, seed, QUANTA_NS[1])?;
    let apart = |a: f64, b: f64| (a / b - 1.0).abs();
    let both = first.instructions.iter().zip(&split.instructions);
    let works = both.map(|(&a, &b)| apart(a, b));
    let undone = first.instructions.iter().zip(&work);
    let undone = undone.map(|(&done, given)| apart(done, assigned_instructions(given)));
    Ok(WorkloadDeviations {
        work: works.fold(apart(first.seconds, split.seconds), f64::max),
        energy: apart(first.joules, split.joules),
        undone: undone.fold(0.0, f64::max),
        stack: first.stack,
        other_bits: first != again,
        solves: first.solves,
    })
}

/// Random programs with one thread or, where they can, with several.
fn workload(world: &PresetCatalog, chip: &Chip, seed: u64) -> Vec<SimulatedProgram> {
    let mut random = seeded_random(seed);
    let most = (chip.places().len() * 5 / 4).clamp(2, MOST_PROGRAMS);
    let programs = random.random_range(1..=most);
    let drawn = (0..programs).filter_map(|_| {
        let program = world.programs.choose(&mut random)?;
        let most = program.threads.as_ref().map_or(1, |t| t.max.min(4));
        Some(instance(program, random.random_range(1..=most), WORK))
    });
    drawn.collect()
}

/// Instructions that an instance is to do, all threads.
fn assigned_instructions(given: &SimulatedProgram) -> f64 {
    let threads = given.program.threads.as_ref();
    let divided = threads.is_none_or(|t| t.divide_work);
    let times = if divided { 1 } else { given.threads };
    given.instructions * f64::from(times)
}

fn run_workload(
    chip: &Arc<Chip>,
    work: &[SimulatedProgram],
    seed: u64,
    quantum_ns: u64,
) -> Result<WorkloadSums, ValidateError> {
    let settings = run_once_settings(seed, "linux");
    let mut machine = build_machine(
        chip,
        work,
        &settings,
        quantum_ns,
        Box::<NullSampleSource>::default(),
    )?;
    let solves = Rc::default();
    machine.set_observer(Box::new(SolveCounter(Rc::clone(&solves))));
    while machine.observe()?.is_some() {}
    let results = machine.results();
    let ends = results.iter().flat_map(|r| &r.completions);
    let solves = *solves.borrow();
    Ok(WorkloadSums {
        seconds: ends.map(|c| c.end_s).fold(0.0, f64::max),
        joules: machine.energy_j(),
        instructions: results.iter().map(|r| r.instructions).collect(),
        stack: worst_stack(&machine, chip),
        solves,
    })
}

/// Cycles in which a thread made progress are those on a PU less switches, refills and spinning;
/// on chips of one clock they follow from the times.
fn worst_stack(machine: &SimMachine, chip: &Chip) -> f64 {
    let mut clocks = chip.core_types().iter().map(|core| core.frequency_ghz);
    let first = clocks.next().unwrap_or(0.0);
    if clocks.any(|clock| clock != first) {
        return 0.0;
    }
    let oracle = machine.oracle();
    let counts = oracle.threads().filter_map(|id| oracle.counts(id));
    let off = counts.map(|c| {
        let lost = (c.overhead_s + c.spin_s) * first * 1e9;
        ((c.stack.total() + lost) / c.cycles.max(1.0) - 1.0).abs()
    });
    off.fold(0.0, f64::max)
}

/// Counts solutions.
struct SolveCounter(Rc<RefCell<SolveCounts>>);

impl Observer for SolveCounter {
    fn note_segment(&mut self, _: &RunSegment<'_>) {}

    fn note_solution(&mut self, _: u64, solution: &Solution) {
        let mut solves = self.0.borrow_mut();
        solves.all += 1;
        solves.open += u64::from(!solution.converged);
        solves.residual = solves.residual.max(solution.residual);
    }
}
