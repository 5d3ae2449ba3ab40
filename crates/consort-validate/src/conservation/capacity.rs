//! Solutions of random placements: within every capacity, whole, converged.

use super::{LAW, PresetCatalog, ROUNDING, check_law, seeded_random};
use crate::alone::demand;
use crate::check::{PublishedFigure, ValidationCheck};
use crate::error::ValidateError;
use crate::group::GroupInputs;
use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solution, Solver};
use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use std::sync::Arc;

/// Relative slack: the solver's tolerance, with a margin for what it amplifies.
const SLACK: f64 = 1e-4;
/// Threads of a case at most.
const MOST_THREADS: usize = 48;
/// Resources that a core's threads share.
const CORE: &str = "dispatch slots, turns of fetch, ports";
/// Largest last change of every rate that the solver promises.
const TOLERANCE: f64 = 1e-6;

/// Figures that one solution shows.
#[derive(Clone, Copy, Debug, Default)]
struct SolutionExtremes {
    /// Largest use over capacity, and of what.
    fullest: f64,
    of: &'static str,
    /// Largest relative difference between a stack's sum and its cycles.
    stack: f64,
    /// Rates and stack terms that are no positive finite numbers.
    senseless: usize,
    converged: bool,
    residual: f64,
}

pub(super) fn checks(
    inputs: &GroupInputs<'_>,
    world: &PresetCatalog,
) -> Result<Vec<ValidationCheck>, ValidateError> {
    let each = inputs.context.by_scale(6, 40);
    let cases = world.cases(each, inputs.context.seed(), 1);
    let shown = inputs.context.map(&cases, |&(machine, seed)| {
        solve_random_placement(world, machine, seed)
    })?;
    let by_machine = shown.chunks(each as usize).zip(&world.chips);
    let capacities = by_machine.map(|(shown, chip)| check_capacity(chip, shown));
    let n = shown.len();
    let stack = shown.iter().map(|s| s.stack).fold(0.0, f64::max);
    let senseless = shown.iter().map(|s| s.senseless).sum::<usize>() as f64;
    let open = shown.iter().filter(|s| !s.converged).count() as f64;
    let residual = shown.iter().map(|s| s.residual).fold(0.0, f64::max);
    let rest = [
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
            format!("of {n} solutions, those that did not converge"),
            0.0,
            open,
        ),
        check_law(
            "residual",
            format!("last change of a rate, worst of {n} solutions"),
            TOLERANCE,
            residual,
        ),
    ];
    Ok(capacities.chain(rest).collect())
}

fn check_capacity(chip: &Chip, shown: &[SolutionExtremes]) -> ValidationCheck {
    let fullest = shown.iter().max_by(|a, b| a.fullest.total_cmp(&b.fullest));
    let (ours, of) = fullest.map_or((0.0, ""), |s| (s.fullest, s.of));
    let name = &chip.spec().name;
    let what = format!(
        "use over capacity on {name}, fullest of {} placements",
        shown.len()
    );
    let most = PublishedFigure::AtMost(1.0 + SLACK);
    LAW.check(format!("capacity/{name}"), what, most, ours)
        .with_note(format!("fullest: {of}"))
}

/// Random threads at random PUs.
fn solve_random_placement(world: &PresetCatalog, machine: usize, seed: u64) -> SolutionExtremes {
    let chip = &world.chips[machine];
    let mut random = seeded_random(seed);
    let mut pus: Vec<usize> = (0..chip.places().len()).collect();
    pus.shuffle(&mut random);
    pus.truncate(random.random_range(1..=pus.len().min(MOST_THREADS)));
    let mut demands: Vec<Demand> = Vec::new();
    for number in 0..pus.len() as u32 {
        let program = world.programs.choose(&mut random);
        let phase = program.and_then(|p| p.phases.choose(&mut random));
        demands.extend(phase.map(|phase| demand(phase, number)));
    }
    for demand in &mut demands {
        demand.home_node = random.random_range(0..chip.domains().nodes);
    }
    let both = pus.iter().zip(&demands);
    let running: Vec<RunningThread<'_>> = both
        .map(|(&pu, demand)| RunningThread { pu, demand })
        .collect();
    let solver = Solver::new(Arc::clone(chip));
    let solution = solver.solve(&running);
    inspect_solution(&solver, &running, &solution)
}

fn inspect_solution(
    solver: &Solver,
    running: &[RunningThread<'_>],
    solution: &Solution,
) -> SolutionExtremes {
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
    for (use_over_capacity, of) in resource_uses(solver, running, solution) {
        if use_over_capacity > shown.fullest {
            (shown.fullest, shown.of) = (use_over_capacity, of);
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
    let mut uses: Vec<(f64, &'static str)> = cores.map(|used| (used, CORE)).collect();
    uses.extend(memory_uses(solver.chip(), running, solution));
    let links = solution.interconnect_utilisation.iter();
    uses.extend(links.map(|&utilisation| (utilisation, "interconnect")));
    uses
}

/// Bandwidth of the memory of each node.
fn memory_uses<'a>(
    chip: &'a Chip,
    running: &'a [RunningThread<'_>],
    solution: &'a Solution,
) -> impl Iterator<Item = (f64, &'static str)> + 'a {
    let memory = &chip.spec().memory;
    let capacity = memory.bandwidth_gb_s * 1e9 * f64::from(memory.controllers_per_node);
    let bytes = move |node: usize| -> f64 {
        let threads = running.iter().zip(&solution.threads);
        let here = threads.filter(move |(r, _)| r.demand.home_node == node);
        here.map(|(_, t)| t.ips * t.flow.memory_lines * f64::from(memory.line_bytes))
            .sum()
    };
    (0..chip.domains().nodes).map(move |node| (bytes(node) / capacity, "memory bandwidth"))
}
