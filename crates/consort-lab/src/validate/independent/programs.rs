//! Whole programs, run by themselves: moves between cores, threads that pay off, and calls of the
//! kernel.

use super::NAME;
use crate::simulate::{chips, programs};
use crate::studies::ExchangePath;
use crate::validate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use crate::validate::data::{ValidateError, data_error};
use crate::validate::simulated::{finish_run, instance, length_instr, start_run};
use crate::validate::{CheckResult, GroupInputs};
use consort_core::stats::spearman;
use consort_sim::chip::Chip;
use consort_sim::engine::ThreadCounts;
use consort_sim::program::presets;
use serde::Deserialize;
use std::sync::Arc;

pub(super) fn checks(inputs: &GroupInputs<'_>) -> CheckResult {
    let mut checks = migration_checks(inputs)?;
    checks.push(check_bus_ranks(inputs)?);
    checks.extend(scaling_checks(inputs, NAME, |name| {
        BY_MEMORY.contains(&name)
    })?);
    checks.extend(synchronisation_checks(inputs)?);
    Ok(checks)
}

const MIGRATION_FILE: &str = "acmp-migration.csv";
/// The published averages are over other mixes of programs: the order of magnitude and half of it.
const REFILL_MEAN: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "Markovic, Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs \
             (UPC 2015), section 6.3.1",
    unit: "cycles",
    tolerance: Tolerance::relative(0.5),
};
/// Single programs between the published extremes, or a tenth of them beyond.
const REFILL_SPAN: CheckTemplate<'static> = CheckTemplate {
    tolerance: Tolerance::relative(0.1),
    ..REFILL_MEAN
};
/// Two groups of one large and three small cores.
const ACMP: &str = "acmp-2+6";
/// Exchanges from each place, at the quick and the full scale, and places, as study A2 has them.
const EXCHANGES: [u32; 2] = [20, 400];
const PLACES: usize = 4;
/// Suites that the source used.
const SUITES: [&str; 2] = ["spec2006", "splash2"];

#[derive(Deserialize)]
struct MigrationRow {
    llc: String,
    mean: f64,
    least: f64,
    most: f64,
}

/// Costs of refilling caches after a move on asymmetric chips.
///
/// Two copies of each program change places on a large and a small core, as in study A2 and as the
/// source's hardware schedulers exchange threads: within a group, whose cores share an LLC, and
/// between two groups, every hardware quantum. What the exchange costs beyond registers and drain
/// is the refill.
fn migration_checks(inputs: &GroupInputs<'_>) -> CheckResult {
    let chip = chips::chip(ACMP)?;
    let mut names = Vec::new();
    for name in presets::names() {
        if SUITES.contains(&presets::find(name)?.suite.as_str()) {
            names.push(name);
        }
    }
    let exchanges = inputs.context.by_scale(EXCHANGES[0], EXCHANGES[1]);
    let mut checks = Vec::new();
    for row in inputs.data.parse_rows::<MigrationRow>(MIGRATION_FILE)? {
        let path = ExchangePath::to_small(&chip, row.llc == "shared")
            .ok_or_else(|| data_error(MIGRATION_FILE, format!("{ACMP} has no such cores")))?;
        let costs = inputs.map(&names, |name| {
            let program = programs::find(name)?;
            let places = (PLACES, inputs.context.seed());
            Ok(path.refill_cycles(&chip, &program, exchanges, places)?)
        })?;
        let mean = costs.iter().sum::<f64>() / costs.len() as f64;
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = costs.iter().copied().fold(0.0, f64::max);
        let llc = &row.llc;
        let note = format!(
            "{} SPEC CPU2006 and SPLASH-2 programs, each next to a copy, on {ACMP}",
            costs.len()
        );
        let check = REFILL_MEAN.check(
            format!("migration-{llc}/mean"),
            format!("mean refill after a move, {llc} LLC"),
            PublishedFigure::Value(row.mean),
            mean,
        );
        checks.push(check.with_note(note));
        for (id, which, ours) in [("least", "smallest", least), ("most", "largest", most)] {
            let span = PublishedFigure::Range {
                low: row.least,
                high: row.most,
            };
            checks.push(REFILL_SPAN.check(
                format!("migration-{llc}/{id}"),
                format!("{which} refill after a move, {llc} LLC"),
                span,
                ours,
            ));
        }
    }
    Ok(checks)
}

const PARSEC_FILE: &str = "parsec-e5320.csv";
const XEON: &str = "xeon-e5320";
/// Programs that the memory path holds back; their serial share is no published figure, so that
/// their scaling is the simulation's own (docs/research/profiles-of-programs.md).
pub(in crate::validate) const BY_MEMORY: [&str; 3] = ["canneal", "facesim", "streamcluster"];
/// One thread more or less has nearly the same energy-delay product near its minimum.
const BEST: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "Bhadauria and McKee, An Approach to Resource-Aware Co-Scheduling for CMPs \
             (ICS 2010), Tables 1 to 3",
    unit: "threads",
    tolerance: Tolerance::absolute(1.0),
};
const SPEEDUP: CheckTemplate<'static> = CheckTemplate {
    unit: "speedup",
    tolerance: Tolerance::absolute(0.0),
    ..BEST
};
/// Near-linear is published as within 10 percent of eightfold.
const NEAR_LINEAR: f64 = 7.2;
const BUS_RANKS: CheckTemplate<'static> = CheckTemplate {
    unit: "Spearman's rho",
    tolerance: Tolerance::absolute(0.0),
    ..BEST
};
/// Rank correlation that is commonly called strong.
const STRONG: f64 = 0.7;
/// Largest number of threads: the machine's cores.
const MOST: u32 = 8;
/// Largest number of barriers of a run.
const MOST_BARRIERS: f64 = 5000.0;

#[derive(Clone, Deserialize)]
struct ParsecRow {
    program: String,
    bus_rank: f64,
    best_threads: f64,
    near_linear: String,
}

/// Sums of a run with some number of threads.
#[derive(Clone, Copy)]
struct ParsecRun {
    seconds: f64,
    joules: f64,
    bytes: f64,
}

/// PARSEC programs alone on the Xeon E5320 machine: contention for the bus.
fn check_bus_ranks(inputs: &GroupInputs<'_>) -> Result<ValidationCheck, ValidateError> {
    let rows: Vec<ParsecRow> = inputs.data.parse_rows(PARSEC_FILE)?;
    let runs = inputs.map(&rows, |row| run_parsec(inputs, &row.program, MOST))?;
    let used = runs.iter().map(|run| run.bytes / run.seconds);
    let pairs: Vec<(f64, f64)> = rows.iter().map(|row| row.bus_rank).zip(used).collect();
    let what = format!(
        "order of {} PARSEC programs by use of the bus, {MOST} threads",
        pairs.len()
    );
    let rho = spearman(&pairs).unwrap_or(f64::NAN);
    let published = PublishedFigure::AtLeast(STRONG);
    Ok(BUS_RANKS.check("parsec-bus-ranks", what, published, rho))
}

/// Best numbers of threads and speedups of the PARSEC programs that a condition holds for.
pub(in crate::validate) fn scaling_checks(
    inputs: &GroupInputs<'_>,
    group: &'static str,
    holds: impl Fn(&str) -> bool,
) -> CheckResult {
    let mut rows: Vec<ParsecRow> = inputs.data.parse_rows(PARSEC_FILE)?;
    rows.retain(|row| holds(&row.program));
    let counts = rows
        .iter()
        .flat_map(|row| (1..=MOST).map(move |n| (row, n)));
    let jobs: Vec<(&ParsecRow, u32)> = counts.collect();
    let runs = inputs.map(&jobs, |(row, threads)| {
        run_parsec(inputs, &row.program, *threads)
    })?;
    let mut checks = Vec::new();
    for (row, runs) in rows.iter().zip(runs.chunks(MOST as usize)) {
        let name = &row.program;
        let product = |run: &ParsecRun| run.joules * run.seconds;
        let best = (0..runs.len()).min_by(|&a, &b| product(&runs[a]).total_cmp(&product(&runs[b])));
        checks.push(CheckTemplate { group, ..BEST }.check(
            format!("parsec-best/{name}"),
            format!("threads of {name} with the lowest energy-delay product on {XEON}"),
            PublishedFigure::Value(row.best_threads),
            best.map_or(f64::NAN, |at| at as f64 + 1.0),
        ));
        let published = match row.near_linear.as_str() {
            "yes" => PublishedFigure::AtLeast(NEAR_LINEAR),
            _ => PublishedFigure::AtMost(NEAR_LINEAR),
        };
        checks.push(CheckTemplate { group, ..SPEEDUP }.check(
            format!("parsec-speedup/{name}"),
            format!("speedup of {name} with {MOST} threads on {XEON}"),
            published,
            runs[0].seconds / runs[runs.len() - 1].seconds,
        ));
    }
    Ok(checks)
}

fn run_parsec(
    inputs: &GroupInputs<'_>,
    name: &str,
    threads: u32,
) -> Result<ParsecRun, ValidateError> {
    let chip = chips::chip(XEON)?;
    let program = programs::find(name)?;
    // So much of the program that the time in which threads wait for each other at its beginning
    // and end hardly matters, but no more than some thousand barriers, each of which is simulated.
    let most = inputs.context.by_scale(1e10, 2e11);
    let barrier = program.threads.as_ref().and_then(|threads| threads.barrier);
    let until = barrier.map_or(f64::INFINITY, |barrier| {
        MOST_BARRIERS * f64::from(MOST) * barrier.spacing_minstr * 1e6
    });
    let instructions = length_instr(&program).min(most).min(until);
    let work = [instance(&program, threads, instructions)];
    // One quantum that outlasts every run; the engine counts in picoseconds, which must not
    // overflow.
    let mut machine = start_run(&chip, &work, inputs.context.seed(), u64::MAX / 2000)?;
    finish_run(&mut machine)?;
    let oracle = machine.oracle();
    let counts = oracle.threads().filter_map(|id| oracle.counts(id));
    let lines: f64 = counts.map(|c| c.flow.memory_lines).sum();
    let results = machine.results();
    let ends = results.iter().flat_map(|r| &r.completions);
    Ok(ParsecRun {
        seconds: ends.map(|c| c.end_s).fold(0.0, f64::max),
        joules: machine.energy_j(),
        bytes: lines * f64::from(chip.spec().memory.line_bytes),
    })
}

/// Contention varies from run to run and host to host: the order of magnitude and half of it. Fewer
/// than one call in two milliseconds is none.
const CALLS: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "Splash-3, measured: docs/research/profiles-of-programs.md",
    unit: "calls per ms",
    tolerance: Tolerance::relative_above(0.5, 0.5),
};
/// Points of processor time.
const KERNEL: CheckTemplate<'static> = CheckTemplate {
    unit: "%",
    tolerance: Tolerance::absolute(5.0),
    ..CALLS
};
/// The described chip that is nearest to the host of the measurement, reduced to as many cores,
/// one CPU each.
const EPYC: &str = "epyc-7763";
const EPYC_CORES: usize = 2;
/// Longest time between two observations, ns.
const QUANTUM_NS: u64 = 1_000_000_000;

/// Medians of the native runs of one program.
#[derive(Deserialize)]
struct SplashCallsRow {
    program: String,
    threads: u32,
    futexes_per_ms: f64,
    kernel_percent: f64,
}

/// Rate of calls of the kernel by which threads wait for and wake each other, and the share of
/// time that passes there.
///
/// The programs of Splash-3 were measured natively on two CPUs
/// (docs/research/profiles-of-programs.md). How often they meet at barriers and take locks went
/// into the program files, from other runs; how often that makes them call the kernel, and the time
/// they spend there, did not.
fn synchronisation_checks(inputs: &GroupInputs<'_>) -> CheckResult {
    let chip = reduced_chip()?;
    let rows = inputs
        .data
        .parse_rows::<SplashCallsRow>("splash-calls.csv")?;
    let ours = inputs.map(&rows, |row| {
        let program = programs::find(&row.program)?;
        let work = [instance(&program, row.threads, length_instr(&program))];
        let mut machine = start_run(&chip, &work, inputs.context.seed(), QUANTUM_NS)?;
        finish_run(&mut machine)?;
        let oracle = machine.oracle();
        let mut sum = ThreadCounts::default();
        for counts in oracle.threads().filter_map(|id| oracle.counts(id)) {
            sum.add(&counts);
        }
        Ok(sum)
    })?;
    let both = rows.iter().zip(&ours);
    Ok(both
        .flat_map(|(row, ours)| check_splash_program(row, ours))
        .collect())
}

fn check_splash_program(row: &SplashCallsRow, ours: &ThreadCounts) -> [ValidationCheck; 2] {
    let (name, threads) = (&row.program, row.threads);
    let on = format!("{name}, {threads} threads on {EPYC_CORES} CPUs");
    let kernel = KERNEL.check(
        format!("splash-kernel/{name}-{threads}"),
        format!("processor time in the kernel, {on}"),
        PublishedFigure::Value(row.kernel_percent),
        100.0 * ours.kernel_s / ours.on_pu_s,
    );
    [
        CALLS.check(
            format!("splash-calls/{name}-{threads}"),
            format!("futex calls per ms of processor time, {on}"),
            PublishedFigure::Value(row.futexes_per_ms),
            ours.futex_returns as f64 / (1e3 * ours.on_pu_s),
        ),
        kernel
            .with_note("measured with faults of pages used first and with ticks, which ours lacks"),
    ]
}

fn reduced_chip() -> Result<Arc<Chip>, ValidateError> {
    let spec = chips::machine_spec(EPYC)?;
    let chip = Chip::with_cores(&spec, Some(1), &|core| core < EPYC_CORES)?;
    Ok(Arc::new(chip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduced_chip_has_two_cores_of_one_pu() {
        let chip = reduced_chip().unwrap();
        assert_eq!(chip.places().len(), EPYC_CORES);
        assert_ne!(chip.places()[0].core, chip.places()[1].core);
    }

    #[test]
    fn calls_and_kernel_time_are_per_processor_time() {
        let row = SplashCallsRow {
            program: "x".to_owned(),
            threads: 4,
            futexes_per_ms: 4.0,
            kernel_percent: 25.0,
        };
        let idle = ThreadCounts {
            on_pu_s: 0.01,
            ..ThreadCounts::default()
        };
        let ours = ThreadCounts {
            kernel_s: 0.0025,
            futex_returns: 20,
            ..idle
        };
        let [calls, kernel] = check_splash_program(&row, &ours);
        assert!((calls.ours - 2.0).abs() < 1e-12 && calls.agrees);
        assert!((kernel.ours - 25.0).abs() < 1e-12 && kernel.agrees);
        let none = check_splash_program(&row, &idle);
        assert!(none.iter().all(|check| !check.agrees));
    }
}
