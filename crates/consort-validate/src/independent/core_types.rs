//! Large against small cores, and the order of programs on a chip, by cycles alone.

use super::NAME;
use crate::alone::per_instruction_on;
use crate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use crate::error::ValidateError;
use crate::group::GroupInputs;
use consort_core::stats::quantile;
use consort_core::stats::spearman;
use consort_sim::chip::Chip;
use consort_sim::contention::Solver;
use consort_sim::machine::presets as machines;
use consort_sim::program::{ProgramSpec, presets};
use serde::Deserialize;
use std::sync::Arc;

const FILE: &str = "core-type-ipc.csv";

const RATIO: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "Chen, public measurements of SPEC CPU2017 on Apple M1 and POWER8",
    unit: "",
    tolerance: Tolerance::relative(0.10),
};
/// Twice or half the spread is another spread; the programs are not the same ones.
const SPREAD: CheckTemplate<'static> = CheckTemplate {
    tolerance: Tolerance::relative(0.5),
    ..RATIO
};
/// Programs of the same name have other code and inputs: half of what is commonly called strong
/// would say nothing, 0.5 is what the project set itself.
const RANKS: CheckTemplate<'static> = CheckTemplate {
    unit: "Spearman's rho",
    tolerance: Tolerance::absolute(0.0),
    ..RATIO
};
const SAME_ORDER: f64 = 0.5;
/// Checks that a large core loses next to nothing to a small one at equal clock.
const SLOWER: CheckTemplate<'static> = CheckTemplate {
    source: "no published core of two is slower per cycle for being the larger one",
    tolerance: Tolerance::relative(0.02),
    ..RATIO
};

/// Machines with two core types, the larger one first in their layout.
const HYBRIDS: [&str; 5] = [
    "apple-m1",
    "core-i9-12900k",
    "rk3588",
    "odroid-xu3",
    "jetson-tx2",
];

#[derive(Deserialize)]
struct CoreTypeIpcRow {
    program: Option<String>,
    m1_large: f64,
    m1_small: f64,
    power8: f64,
}

pub(super) fn checks(inputs: &GroupInputs<'_>) -> Result<Vec<ValidationCheck>, ValidateError> {
    let lines: Vec<CoreTypeIpcRow> = inputs.data.parse_rows(FILE)?;
    let spec: Vec<&str> = presets::suites()?.remove("spec2006").unwrap_or_default();
    let m1 = ipcs_by_core_type(inputs, "apple-m1", &spec, None)?;
    let power8 = ipcs_alone(inputs, "power8", &spec)?;
    let mut checks = check_distribution(&lines, &m1);
    checks.push(check_order(
        "apple-m1",
        "large over small core",
        &lines,
        &spec,
        |line| line.m1_large / line.m1_small,
        |i| ratio(m1[i]),
    ));
    checks.push(check_order(
        "power8",
        "instructions per cycle",
        &lines,
        &spec,
        |line| line.power8,
        |i| power8[i],
    ));
    for name in HYBRIDS {
        checks.push(check_least_gain(inputs, name, &spec)?);
    }
    Ok(checks)
}

/// Instructions per cycle on a large and on a small core.
type CoreTypeIpcs = (f64, f64);

fn ratio((large, small): CoreTypeIpcs) -> f64 {
    large / small
}

/// Every program alone on a core of each type; at one clock where that is given, GHz.
fn ipcs_by_core_type(
    inputs: &GroupInputs<'_>,
    machine: &str,
    programs: &[&str],
    clock_ghz: Option<f64>,
) -> Result<Vec<CoreTypeIpcs>, ValidateError> {
    let mut spec = machines::find(machine)?;
    for core in spec.core_types.values_mut() {
        core.frequency_ghz = clock_ghz.unwrap_or(core.frequency_ghz);
    }
    let chip = Arc::new(Chip::new(&spec, None)?);
    let large = chip.places().first().map(|place| place.core_type);
    let small = chip
        .places()
        .iter()
        .position(|place| Some(place.core_type) != large);
    let solver = Solver::new(chip);
    let on_both = |name: &&str| {
        let program = presets::find(name)?;
        Ok((
            ipc(&solver, 0, &program),
            ipc(&solver, small.unwrap_or(0), &program),
        ))
    };
    inputs.context.map(programs, on_both)?.into_iter().collect()
}

/// Instructions per cycle of every program alone on PU 0.
fn ipcs_alone(
    inputs: &GroupInputs<'_>,
    machine: &str,
    programs: &[&str],
) -> Result<Vec<f64>, ValidateError> {
    let solver = Solver::new(Arc::new(Chip::new(&machines::find(machine)?, None)?));
    let of = |name: &&str| Ok(ipc(&solver, 0, &presets::find(name)?));
    inputs.context.map(programs, of)?.into_iter().collect()
}

fn ipc(solver: &Solver, pu: usize, program: &ProgramSpec) -> f64 {
    1.0 / per_instruction_on(solver, pu, program, |rates| rates.cpi)
}

/// Median and spread of what a large core gains, over all programs of either suite.
fn check_distribution(lines: &[CoreTypeIpcRow], ours: &[CoreTypeIpcs]) -> Vec<ValidationCheck> {
    let published: Vec<f64> = lines
        .iter()
        .map(|line| line.m1_large / line.m1_small)
        .collect();
    let ours: Vec<f64> = ours.iter().map(|&ipcs| ratio(ipcs)).collect();
    let what = "instructions per cycle, large over small core of apple-m1";
    let spread = |ratios: &[f64]| Some(quantile(ratios, 0.9)? / quantile(ratios, 0.1)?);
    let both = |of: &dyn Fn(&[f64]) -> Option<f64>| (of(&published), of(&ours));
    let check = |topic: &CheckTemplate<'_>,
                 id: &str,
                 what: String,
                 (published, ours): (Option<f64>, Option<f64>)| {
        let published = PublishedFigure::Value(published.unwrap_or(f64::NAN));
        topic.check(
            format!("core-types/{id}"),
            what,
            published,
            ours.unwrap_or(f64::NAN),
        )
    };
    vec![
        check(
            &RATIO,
            "median",
            format!("{what}, median"),
            both(&|r| quantile(r, 0.5)),
        ),
        check(
            &SPREAD,
            "spread",
            format!("{what}, 90th over 10th percentile"),
            both(&spread),
        ),
    ]
}

/// The order of the programs that both suites have.
fn check_order(
    machine: &str,
    of: &str,
    lines: &[CoreTypeIpcRow],
    programs: &[&str],
    published: impl Fn(&CoreTypeIpcRow) -> f64,
    ours: impl Fn(usize) -> f64,
) -> ValidationCheck {
    let pairs = lines.iter().filter_map(|line| {
        let program = line.program.as_deref()?;
        let i = programs.iter().position(|name| *name == program)?;
        Some((published(line), ours(i)))
    });
    let pairs: Vec<(f64, f64)> = pairs.collect();
    let what = format!("order of {} programs on {machine}, {of}", pairs.len());
    let rho = spearman(&pairs).unwrap_or(f64::NAN);
    let check = RANKS.check(
        format!("core-types/order-{machine}"),
        what,
        PublishedFigure::AtLeast(SAME_ORDER),
        rho,
    );
    check.with_note("programs of CPU2017 beside those of CPU2006 that they go back to")
}

/// The program that gains least by the larger core, both at the smaller one's clock.
fn check_least_gain(
    inputs: &GroupInputs<'_>,
    machine: &str,
    programs: &[&str],
) -> Result<ValidationCheck, ValidateError> {
    let spec = machines::find(machine)?;
    let clocks = spec.core_types.values().map(|core| core.frequency_ghz);
    let clock_ghz = clocks.fold(f64::INFINITY, f64::min);
    let ipcs = ipcs_by_core_type(inputs, machine, programs, Some(clock_ghz))?;
    let ratios: Vec<f64> = ipcs.into_iter().map(ratio).collect();
    let below = ratios.iter().filter(|&&ratio| ratio < 1.0).count();
    let least = ratios
        .iter()
        .copied()
        .zip(programs)
        .min_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, name) = least.map_or((f64::NAN, "no program"), |(ratio, name)| (ratio, *name));
    let what = format!("least gain by the larger core of {machine} at {clock_ghz} GHz");
    let check = SLOWER.check(
        format!("core-types/least-{machine}"),
        what,
        PublishedFigure::AtLeast(1.0),
        ratio,
    );
    Ok(check.with_note(format!(
        "{name}; {below} of {} programs are slower",
        ratios.len()
    )))
}
