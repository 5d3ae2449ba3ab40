//! Rate of calls of the kernel by which threads wait for and wake each other, and the share of
//! time that passes there.
//!
//! The programs of Splash-3 were measured natively on two PUs (docs/measurements/splash.md). How
//! often they meet at barriers and take locks went into the program files, from other runs; how
//! often that makes them call the kernel, and what they spend there, did not.

use super::NAME;
use crate::alone::{instance, length_instr, run_once_settings};
use crate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use crate::error::ValidateError;
use crate::group::GroupInputs;
use consort_core::Machine;
use consort_experiment::{NullSampleSource, build_machine};
use consort_sim::chip::Chip;
use consort_sim::engine::ThreadCounts;
use consort_sim::program::presets;
use serde::Deserialize;
use std::sync::Arc;

const FILE: &str = "splash-calls.csv";
const SOURCE: &str = "Splash-3, measured: docs/measurements/splash.md";

/// Contention varies from run to run and host to host: the order of magnitude and half of it. Fewer
/// than one call in two milliseconds is none.
const CALLS: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: SOURCE,
    unit: "calls per ms",
    tolerance: Tolerance::relative_above(0.5, 0.5),
};
/// Points of processor time.
const KERNEL: CheckTemplate<'static> = CheckTemplate {
    unit: "%",
    tolerance: Tolerance::absolute(5.0),
    ..CALLS
};

/// The nearest described chip to the host of the measurement, reduced to as many cores, one PU each.
const MACHINE: &str = "epyc-7763";
const CORES: usize = 2;
/// Longest time between two looks, ns.
const QUANTUM_NS: u64 = 1_000_000_000;

/// Medians of the native runs of one program.
#[derive(Deserialize)]
struct SplashCallsRow {
    program: String,
    threads: u32,
    futexes_per_ms: f64,
    kernel_percent: f64,
}

pub(super) fn checks(inputs: &GroupInputs<'_>) -> Result<Vec<ValidationCheck>, ValidateError> {
    let chip = reduced_chip()?;
    let lines = inputs.data.parse_rows::<SplashCallsRow>(FILE)?;
    let ours = inputs
        .context
        .map(&lines, |line| run_program(inputs, &chip, line))?;
    let mut checks = Vec::new();
    for (line, ours) in lines.iter().zip(ours) {
        checks.extend(check_program(line, &ours?));
    }
    Ok(checks)
}

fn check_program(line: &SplashCallsRow, ours: &ThreadCounts) -> [ValidationCheck; 2] {
    let on = format!("{}, {} threads on {CORES} PUs", line.program, line.threads);
    let id = |what: &str| format!("splash-{what}/{}-{}", line.program, line.threads);
    let calls = ours.futex_returns as f64 / (1e3 * ours.on_pu_s);
    let kernel = 100.0 * ours.kernel_s / ours.on_pu_s;
    let published = PublishedFigure::Value;
    [
        CALLS.check(
            id("calls"),
            format!("futex calls per ms of processor time, {on}"),
            published(line.futexes_per_ms),
            calls,
        ),
        KERNEL
            .check(
                id("kernel"),
                format!("processor time in the kernel, {on}"),
                published(line.kernel_percent),
                kernel,
            )
            .with_note("measured with faults of pages used first and with ticks, which ours lacks"),
    ]
}

fn reduced_chip() -> Result<Arc<Chip>, ValidateError> {
    let spec = consort_sim::machine::presets::find(MACHINE)?;
    let chip = Chip::with_cores(&spec, Some(1), &|core| core < CORES)?;
    Ok(Arc::new(chip))
}

/// Counts of all threads of a program from its beginning to its end.
fn run_program(
    inputs: &GroupInputs<'_>,
    chip: &Arc<Chip>,
    line: &SplashCallsRow,
) -> Result<ThreadCounts, ValidateError> {
    let program = Arc::new(presets::find(&line.program)?);
    let work = [instance(&program, line.threads, length_instr(&program))];
    let settings = run_once_settings(inputs.context.seed(), "linux");
    let mut machine = build_machine(
        chip,
        &work,
        &settings,
        QUANTUM_NS,
        Box::<NullSampleSource>::default(),
    )?;
    while machine.observe()?.is_some() {}
    let oracle = machine.oracle();
    let mut sum = ThreadCounts::default();
    for counts in oracle.threads().filter_map(|id| oracle.counts(id)) {
        sum.add(&counts);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chip_is_two_cores_of_one_pu() {
        let chip = reduced_chip().unwrap();
        assert_eq!(chip.places().len(), CORES);
        assert_ne!(chip.places()[0].core, chip.places()[1].core);
    }

    #[test]
    fn calls_are_per_time_on_pus_and_kernel_time_is_a_share_of_it() {
        let line = SplashCallsRow {
            program: "x".to_owned(),
            threads: 4,
            futexes_per_ms: 4.0,
            kernel_percent: 25.0,
        };
        let ours = ThreadCounts {
            on_pu_s: 0.01,
            kernel_s: 0.0025,
            futex_returns: 20,
            ..ThreadCounts::default()
        };
        let [calls, kernel] = check_program(&line, &ours);
        assert!((calls.ours - 2.0).abs() < 1e-12 && calls.agrees);
        assert!((kernel.ours - 25.0).abs() < 1e-12 && kernel.agrees);
        let none = check_program(
            &line,
            &ThreadCounts {
                on_pu_s: 0.01,
                ..ThreadCounts::default()
            },
        );
        assert!(none.iter().all(|check| !check.agrees));
    }
}
