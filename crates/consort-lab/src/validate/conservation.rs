//! Laws, over random workloads on every machine.

use super::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use super::data::ValidateError;
use super::simulated::{demand, finish_run, instance, start_run};
use super::{CheckResult, GroupInputs, GroupOutput, GroupResult};
use crate::simulate::{chips, programs};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solution, Solver};
use consort_sim::engine::{Observer, RunSegment, SimulatedProgram};
use consort_sim::machine;
use consort_sim::program::{self, ProgramSpec};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

pub(super) const NAME: &str = "conservation";

/// A law: nothing was published, it follows from the meaning of the figures.
const LAW: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "law",
    unit: "",
    tolerance: Tolerance::absolute(0.0),
};

/// Relative slack for sums in floating point.
const ROUNDING: f64 = 1e-9;
/// Relative slack of times: events fall on whole picoseconds and are a microsecond or more apart.
const CLOCK: f64 = 1e-6;
/// Relative slack of capacities: the solver's tolerance, with a margin because it is amplified.
const SLACK: f64 = 1e-4;
/// Largest last change of every rate that the solver promises.
const TOLERANCE: f64 = 1e-6;
/// Largest number of threads that are solved together.
const MOST_THREADS: usize = 48;
/// Largest number of programs that are run together.
const MOST_PROGRAMS: usize = 16;
/// Quanta that divide time in different ways, ns.
const QUANTA_NS: [u64; 2] = [10_000_000, 1_300_000];
/// Work of each program of a run, instructions.
const WORK: f64 = 2e7;

pub(super) fn run(inputs: &GroupInputs<'_>) -> GroupResult {
    let catalog = PresetCatalog {
        chips: machine::presets::names()
            .map(chips::chip)
            .collect::<Result<_, _>>()?,
        programs: program::presets::names()
            .map(programs::find)
            .collect::<Result<_, _>>()?,
    };
    let mut checks = solution_checks(inputs, &catalog)?;
    checks.extend(run_checks(inputs, &catalog)?);
    Ok(GroupOutput {
        checks,
        notes: vec![
            "Cases are drawn from the seed: other seeds are other workloads. The property tests \
             draw machines and programs as well."
                .to_owned(),
        ],
        ..GroupOutput::default()
    })
}

/// Every machine and every program.
struct PresetCatalog {
    chips: Vec<Arc<Chip>>,
    programs: Vec<Arc<ProgramSpec>>,
}

impl PresetCatalog {
    /// Cases of each machine: its chip, and a seed of the case's own.
    fn cases(&self, each: u64, seed: u64, purpose: u64) -> Vec<(&Arc<Chip>, u64)> {
        let mut cases = Vec::new();
        for (number, chip) in self.chips.iter().enumerate() {
            // Purpose, machine and case have bits of their own, so that no two cases share a seed.
            let mixed = |case| seed ^ (purpose << 56 | (number as u64) << 40 | case << 20);
            cases.extend((0..each).map(|case| (chip, mixed(case))));
        }
        cases
    }
}

fn check_law(id: &str, what: String, most: f64, ours: f64) -> ValidationCheck {
    LAW.check(id, what, PublishedFigure::AtMost(most), ours)
}

/// Extremes of one solution.
#[derive(Clone, Copy, Debug, Default)]
struct SolutionExtremes {
    /// Largest use over capacity, and the resource.
    fullest: (f64, &'static str),
    /// Largest relative difference between a stack's sum and its cycles.
    stack: f64,
    /// Rates and stack terms that are no positive finite numbers.
    senseless: usize,
    converged: bool,
    residual: f64,
}

/// Solutions of random placements: within every capacity, whole, converged.
fn solution_checks(inputs: &GroupInputs<'_>, catalog: &PresetCatalog) -> CheckResult {
    let each = inputs.context.by_scale(6, 40);
    let cases = catalog.cases(each, inputs.context.seed(), 1);
    let shown = inputs.map(&cases, |(chip, seed)| {
        Ok(solve_random_placement(catalog, chip, *seed))
    })?;
    let mut checks = Vec::new();
    for (shown, chip) in shown.chunks(each as usize).zip(&catalog.chips) {
        let fullest = shown.iter().map(|s| s.fullest);
        let (ours, resource) = fullest
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or_default();
        let name = &chip.spec().name;
        let what = format!(
            "use over capacity on {name}, fullest of {} placements",
            shown.len()
        );
        let check = check_law(&format!("capacity/{name}"), what, 1.0 + SLACK, ours);
        checks.push(check.with_note(format!("fullest: {resource}")));
    }
    let n = shown.len();
    let stack = shown.iter().map(|s| s.stack).fold(0.0, f64::max);
    let senseless = shown.iter().map(|s| s.senseless).sum::<usize>() as f64;
    let open = shown.iter().filter(|s| !s.converged).count() as f64;
    let residual = shown.iter().map(|s| s.residual).fold(0.0, f64::max);
    checks.extend([
        check_law(
            "stack-sums",
            format!("stack against cycles, worst of {n} solutions"),
            ROUNDING,
            stack,
        ),
        check_law(
            "finite",
            format!("rates and terms that make no sense, {n} solutions"),
            0.0,
            senseless,
        ),
        check_law(
            "converged",
            format!("of {n} solutions, the ones that did not converge"),
            0.0,
            open,
        ),
        check_law(
            "residual",
            format!("last change of a rate, worst of {n} solutions"),
            TOLERANCE,
            residual,
        ),
    ]);
    Ok(checks)
}

/// Solves random threads on random CPUs.
fn solve_random_placement(
    catalog: &PresetCatalog,
    chip: &Arc<Chip>,
    seed: u64,
) -> SolutionExtremes {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut pus: Vec<usize> = (0..chip.places().len()).collect();
    pus.shuffle(&mut random);
    pus.truncate(random.random_range(1..=pus.len().min(MOST_THREADS)));
    let mut demands: Vec<Demand> = Vec::new();
    for number in 0..pus.len() as u32 {
        let program = catalog.programs.choose(&mut random);
        let phase = program.and_then(|p| p.phases.choose(&mut random));
        demands.extend(phase.map(|phase| demand(phase, number)));
    }
    for demand in &mut demands {
        demand.home_node = random.random_range(0..chip.domains().nodes);
    }
    let running: Vec<RunningThread<'_>> = { pus.iter().zip(&demands) }
        .map(|(&pu, demand)| RunningThread { pu, demand })
        .collect();
    let solver = Solver::new(Arc::clone(chip));
    let solution = solver.solve(&running);
    let mut shown = SolutionExtremes {
        converged: solution.converged,
        residual: solution.residual,
        ..SolutionExtremes::default()
    };
    for thread in &solution.threads {
        let off = (thread.stack.total() / thread.cpi - 1.0).abs();
        shown.stack = shown.stack.max(off);
        let bad = |term: &&f64| !term.is_finite() || **term < -ROUNDING;
        shown.senseless += thread.stack.to_array().iter().filter(bad).count();
        shown.senseless += usize::from(!(thread.ips.is_finite() && thread.ips > 0.0));
    }
    for used in resource_uses(&solver, &running, &solution) {
        if used.0 > shown.fullest.0 {
            shown.fullest = used;
        }
    }
    shown
}

/// Every shared resource's use over its capacity.
fn resource_uses(
    solver: &Solver,
    running: &[RunningThread<'_>],
    solution: &Solution,
) -> Vec<(f64, &'static str)> {
    let cores = solver.core_use(running, solution).into_iter();
    let mut uses: Vec<(f64, &'static str)> = cores
        .map(|used| (used, "dispatch slots, turns of fetch, ports"))
        .collect();
    let chip = solver.chip();
    let memory = &chip.spec().memory;
    let capacity = memory.bandwidth_gb_s * 1e9 * f64::from(memory.controllers_per_node);
    for node in 0..chip.domains().nodes {
        let threads = running.iter().zip(&solution.threads);
        let here = threads.filter(|(r, _)| r.demand.home_node == node);
        let bytes: f64 = here
            .map(|(_, t)| t.ips * t.flow.memory_lines * f64::from(memory.line_bytes))
            .sum();
        uses.push((bytes / capacity, "memory bandwidth"));
    }
    let links = solution.interconnect_utilisation.iter();
    uses.extend(links.map(|&utilisation| (utilisation, "interconnect")));
    uses
}

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

/// Deviations of a workload's runs from each other and from its work, relative.
#[derive(Clone, Copy, Debug, Default)]
struct WorkloadDeviations {
    work: f64,
    energy: f64,
    undone: f64,
    stack: f64,
    other_bits: bool,
    solves: SolveCounts,
}

/// Random workloads run to their end: nothing is lost, however time is divided.
fn run_checks(inputs: &GroupInputs<'_>, catalog: &PresetCatalog) -> CheckResult {
    let each = inputs.context.by_scale(1, 8);
    let cases = catalog.cases(each, inputs.context.seed(), 2);
    let shown = inputs.map(&cases, |(chip, seed)| compare_runs(catalog, chip, *seed))?;
    let n = shown.len();
    let worst = |of: fn(&WorkloadDeviations) -> f64| shown.iter().map(of).fold(0.0, f64::max);
    let other = shown.iter().filter(|s| s.other_bits).count() as f64;
    let all: u64 = shown.iter().map(|s| s.solves.all).sum();
    let open: u64 = shown.iter().map(|s| s.solves.open).sum();
    let residual = worst(|s| s.solves.residual);
    let mut checks = Vec::new();
    for (id, what, most, ours) in [
        (
            "work",
            "work done against work given, relative",
            ROUNDING,
            worst(|s| s.undone),
        ),
        (
            "work-splits",
            "work and time under other quanta, relative",
            ROUNDING,
            worst(|s| s.work),
        ),
        (
            "energy-splits",
            "energy under other quanta, relative",
            ROUNDING,
            worst(|s| s.energy),
        ),
        (
            "stack-cycles",
            "stack against cycles of progress, relative",
            CLOCK,
            worst(|s| s.stack),
        ),
    ] {
        let what = format!("{what}, worst of {n} workloads");
        checks.push(check_law(id, what, most, ours));
    }
    let what = format!("of {n} workloads, the ones that repeat with other bits");
    checks.push(check_law("same-seed", what, 0.0, other));
    let what = format!("of {all} solutions in runs, the ones that did not converge");
    let converged = check_law("converged-runs", what, 0.0, open as f64);
    checks.push(converged.with_note(format!("worst residual {residual:.1e}")));
    Ok(checks)
}

fn compare_runs(
    catalog: &PresetCatalog,
    chip: &Arc<Chip>,
    seed: u64,
) -> Result<WorkloadDeviations, ValidateError> {
    let work = draw_workload(catalog, chip, seed);
    let first = run_workload(chip, &work, seed, QUANTA_NS[0])?;
    let again = run_workload(chip, &work, seed, QUANTA_NS[0])?;
    let split = run_workload(chip, &work, seed, QUANTA_NS[1])?;
    let apart = |a: f64, b: f64| (a / b - 1.0).abs();
    let mut work_apart = apart(first.seconds, split.seconds);
    for (&a, &b) in first.instructions.iter().zip(&split.instructions) {
        work_apart = work_apart.max(apart(a, b));
    }
    let mut undone = 0.0_f64;
    for (&done, given) in first.instructions.iter().zip(&work) {
        let threads = given.program.threads.as_ref();
        // Programs that do not divide their work do it once in each thread.
        let times = if threads.is_none_or(|t| t.divide_work) {
            1
        } else {
            given.threads
        };
        undone = undone.max(apart(done, given.instructions * f64::from(times)));
    }
    Ok(WorkloadDeviations {
        work: work_apart,
        energy: apart(first.joules, split.joules),
        undone,
        stack: first.stack,
        other_bits: first != again,
        solves: first.solves,
    })
}

/// Random programs with one thread or, if they can, with several.
fn draw_workload(catalog: &PresetCatalog, chip: &Chip, seed: u64) -> Vec<SimulatedProgram> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let most = (chip.places().len() * 5 / 4).clamp(2, MOST_PROGRAMS);
    let programs = random.random_range(1..=most);
    let drawn = (0..programs).filter_map(|_| {
        let program = catalog.programs.choose(&mut random)?;
        let most = program.threads.as_ref().map_or(1, |t| t.max.min(4));
        Some(instance(program, random.random_range(1..=most), WORK))
    });
    drawn.collect()
}

fn run_workload(
    chip: &Arc<Chip>,
    work: &[SimulatedProgram],
    seed: u64,
    quantum_ns: u64,
) -> Result<WorkloadSums, ValidateError> {
    let mut machine = start_run(chip, work, seed, quantum_ns)?;
    let solves = Rc::default();
    machine.set_observer(Box::new(SolveCounter(Rc::clone(&solves))));
    finish_run(&mut machine)?;
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

/// Largest relative difference between stacks and cycles of progress. These are the cycles on a CPU
/// less switches, refills and spinning, which follow from times only on chips of one clock.
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
