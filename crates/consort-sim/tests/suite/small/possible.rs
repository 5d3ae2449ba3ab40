//! What no solution may claim, whatever was asked.

use consort_sim::chip::Chip;
use consort_sim::contention::{RunningThread, Solution, ThreadRates};
use consort_sim::machine::Scope;
use consort_sim::machine::detail::{FusionPair, WorkKind};
use consort_sim::machine::tables::CoreTables;

/// Relative slack: the solver's tolerance, with a margin for what it amplifies.
const SLACK: f64 = 1e-4;

/// A rate or a part of a stack that is no number, or is negative; a state that is neither
/// converged nor said not to be.
pub fn impossible(solution: &Solution) -> Option<String> {
    let wrong = |t: &&ThreadRates| {
        let mut parts = t.stack.to_array().into_iter();
        !(t.ips.is_finite() && t.ips > 0.0) || parts.any(|p| !(p.is_finite() && p > -1e-9))
    };
    if let Some(thread) = solution.threads.iter().find(wrong) {
        return Some(format!("{thread:?}"));
    }
    let stations = [
        &solution.memory_utilisation,
        &solution.interconnect_utilisation,
    ];
    let mut used = stations.into_iter().flatten();
    if let Some(used) = used.find(|u| !(0.0..=1.0 + SLACK).contains(*u)) {
        return Some(format!("a station is used to {used}"));
    }
    let reported = solution.converged == (solution.residual <= 1e-6);
    (!reported).then(|| {
        format!(
            "converged {}, residual {}",
            solution.converged, solution.residual
        )
    })
}

/// More work than a core's width and units or a node's memory can do.
pub fn overload(chip: &Chip, running: &[RunningThread<'_>], solution: &Solution) -> Option<String> {
    let threads: Vec<_> = running.iter().zip(&solution.threads).collect();
    let mut cores = 0..chip.domains().cores;
    let mut nodes = 0..chip.domains().nodes;
    let of_core = |core| {
        let here = |(r, _): &&(&RunningThread<'_>, &ThreadRates)| chip.places()[r.pu].core == core;
        core_overload(chip, threads.iter().filter(here))
    };
    let of_node = |node| {
        let home = |(r, _): &&(&RunningThread<'_>, &ThreadRates)| r.demand.home_node == node;
        node_overload(chip, threads.iter().filter(home))
    };
    cores.find_map(of_core).or_else(|| nodes.find_map(of_node))
}

type Thread<'a> = &'a (&'a RunningThread<'a>, &'a ThreadRates);

fn core_overload<'a>(chip: &Chip, members: impl Iterator<Item = Thread<'a>>) -> Option<String> {
    let (mut dispatched, mut fp, mut units) = (0.0, 0.0, 0.0_f64);
    let mut width = f64::INFINITY;
    for (running, rates) in members {
        let place = chip.places()[running.pu];
        let core = chip.core_spec(place);
        let per_cycle = rates.ips / chip.frequency_hz(place);
        // The mix of a phase is rounded; what is executed is the mean over its stretches.
        let stretches = running.demand.phase.spec.stretches_or_default();
        let on_vector_units = core.units.vector.is_some();
        let (mut fp_share, mut vector_share) = (0.0, 0.0);
        for stretch in &stretches {
            fp_share += stretch.share * stretch.mix.fp;
            if !on_vector_units {
                vector_share += stretch.share * (stretch.mix.vector - stretch.moves);
            }
        }
        // Whole cycles, as both engines count them.
        let CoreTables { times, front, .. } = CoreTables::new(core);
        // A comparison that is fused with the branch behind it takes one slot together with it.
        let pairs = running.demand.phase.spec.code.pairs.pairs().into_iter();
        let is_of_instructions = |pair: FusionPair| {
            front.fuses[pair.index()]
                && !matches!(
                    pair,
                    FusionPair::Operand
                        | FusionPair::Indexed
                        | FusionPair::IndexedUpdate
                        | FusionPair::Result
                )
        };
        let fused = pairs.filter(|(pair, ..)| is_of_instructions(*pair));
        let fused: f64 = fused.map(|(.., amount)| amount).sum();
        dispatched += per_cycle * (1.0 - fused);
        // Conversions and packed multiplications have times of their own.
        let kinds = running.demand.phase.spec.code.kinds.works();
        let taken = |work: WorkKind, share: f64| {
            let of_work = kinds.iter().filter(|(kind, ..)| kind.usual() == work);
            let distinguished: f64 = of_work.map(|(.., operations)| operations).sum();
            (share - distinguished).max(0.0) * f64::from(times[work.index()].interval_cycles)
        };
        fp +=
            per_cycle * (taken(WorkKind::FpAdd, fp_share) + taken(WorkKind::Vector, vector_share));
        units = match core.units.fp.per {
            Scope::Core => f64::from(core.units.fp.count),
            Scope::Pu => units + f64::from(core.units.fp.count),
        };
        width = core.dispatch_width;
    }
    if dispatched > width * (1.0 + SLACK) {
        return Some(format!("a core dispatches {dispatched} of {width}"));
    }
    (fp > units * (1.0 + SLACK)).then(|| format!("a core uses {fp} of {units} FPUs"))
}

fn node_overload<'a>(chip: &Chip, threads: impl Iterator<Item = Thread<'a>>) -> Option<String> {
    let memory = &chip.spec().memory;
    let capacity = memory.bandwidth_gb_s * 1e9 * f64::from(memory.controllers_per_node);
    let lines: f64 = threads.map(|(_, t)| t.ips * t.flow.memory_lines).sum();
    let bytes = lines * f64::from(memory.line_bytes);
    let over = bytes > capacity * (1.0 + SLACK);
    over.then(|| format!("a node moves {bytes} of {capacity} B/s"))
}
