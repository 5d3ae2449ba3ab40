//! Figures that went into the profiles, found again: a consistency check, not a proof.

use super::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use super::data::{PublishedData, ValidateError};
use super::independent::{BY_MEMORY, scaling_checks};
use super::simulated::per_instruction;
use super::{CheckResult, GroupInputs, GroupOutput, GroupResult};
use crate::simulate::chips::full_chip;
use consort_sim::contention::Solver;
use consort_sim::program::{MixSpec, presets};
use serde::Deserialize;

pub(super) const NAME: &str = "consistency";

/// Agreement of one program's CPI. The memory behaviour of SPEC CPU2006 is from this source.
const CPI: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "Navarro-Torres et al., PLOS ONE 14(8):e0220135 (2019)",
    unit: "cycles/instr",
    tolerance: Tolerance::relative(0.10),
};
/// Mean of the errors' sizes.
const MEAN_CPI: CheckTemplate<'static> = CheckTemplate {
    unit: "% mean error",
    tolerance: Tolerance::absolute(0.0),
    ..CPI
};
/// Largest mean error that counts as fitting together, percent.
const MOST_PERCENT: f64 = 10.0;
/// Differences of a twentieth of a miss per kilo-instruction are within the rounding of two inputs'
/// figures and change no CPI by a percent.
const MISSES: CheckTemplate<'static> = CheckTemplate {
    unit: "misses/kinstr",
    tolerance: Tolerance::relative_above(0.10, 0.05),
    ..CPI
};
const MIX: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "Markovic, Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs (UPC 2015), Table 3.2",
    unit: "% of instr",
    tolerance: Tolerance::absolute(0.1),
};

/// LLC and L2 together in the measurement with the smallest cache, KiB (docs/research/profiles-of-programs.md).
const SMALL_LLC_KIB: f64 = 4608.0;

pub(super) fn run(inputs: &GroupInputs<'_>) -> GroupResult {
    let measured = read_measured_programs(inputs.data)?;
    let solvers = skylake_solvers(inputs.data)?;
    let ours = inputs.map(&measured, |program| {
        let spec = presets::find(&program.name)?;
        let [prefetching, small, whole] = &solvers;
        let cpi = |solver| per_instruction(solver, 0, &spec, |rates| rates.cpi);
        let mpki =
            |solver| 1000.0 * per_instruction(solver, 0, &spec, |rates| rates.flow.llc_misses);
        Ok([
            cpi(prefetching),
            cpi(small),
            cpi(whole),
            mpki(small),
            mpki(whole),
        ])
    })?;
    let pairs: Vec<(&MeasuredProgram, SoloFigures)> = measured.iter().zip(ours).collect();
    let mut checks = cpi_checks(&pairs);
    for (program, ours) in &pairs {
        let name = &program.name;
        for (size, part, figure) in [
            ("whole", "whole LLC", MPKI_WHOLE),
            ("small", "3.5 MB of LLC", MPKI_SMALL),
        ] {
            let what = format!("LLC misses of {name} alone, prefetchers off, {part}");
            let published = PublishedFigure::Value(program.figures[figure]);
            checks.push(MISSES.check(
                format!("misses-{size}/{name}"),
                what,
                published,
                ours[figure],
            ));
        }
    }
    checks.extend(mix_checks(inputs.data)?);
    // The serial share of all other PARSEC programs was taken from their scaling.
    checks.extend(scaling_checks(inputs, NAME, |name| {
        !BY_MEMORY.contains(&name)
    })?);
    Ok(GroupOutput {
        checks,
        notes: vec![
            "CPI, misses, instruction mixes and numbers of threads went into the program files \
             (docs/research/profiles-of-programs.md); agreement shows that nothing was lost on the way."
                .to_owned(),
        ],
        ..GroupOutput::default()
    })
}

/// CPI with prefetchers; CPI with a small and the whole LLC, and LLC misses per kilo-instruction
/// with both, without prefetchers.
type SoloFigures = [f64; 5];

const CPI_PREFETCH: usize = 0;
const CPI_SMALL: usize = 1;
const CPI_WHOLE: usize = 2;
const MPKI_SMALL: usize = 3;
const MPKI_WHOLE: usize = 4;

/// One program: means over its inputs, weighted by instructions.
struct MeasuredProgram {
    name: String,
    ginstr: f64,
    figures: SoloFigures,
}

fn read_measured_programs(data: &PublishedData) -> Result<Vec<MeasuredProgram>, ValidateError> {
    let mut all: Vec<MeasuredProgram> = Vec::new();
    let rows: Vec<(String, f64, SoloFigures)> = data.parse_rows("spec2006-skylake.csv")?;
    for (name, ginstr, figures) in rows {
        let at = all.iter().position(|known| known.name == name);
        let at = at.unwrap_or_else(|| {
            all.push(MeasuredProgram {
                name,
                ginstr: 0.0,
                figures: SoloFigures::default(),
            });
            all.len() - 1
        });
        let known = &mut all[at];
        known.ginstr += ginstr;
        let part = ginstr / known.ginstr;
        for (mean, value) in known.figures.iter_mut().zip(figures) {
            *mean += part * (value - *mean);
        }
    }
    Ok(all)
}

/// The measured machine with prefetchers, without them and with a small LLC, and without them.
fn skylake_solvers(data: &PublishedData) -> Result<[Solver; 3], ValidateError> {
    let prefetching = data.parse_machine("skylake-sp.toml")?;
    let mut whole = prefetching.clone();
    for core in whole.core_types.values_mut() {
        core.prefetcher = None;
    }
    let mut small = whole.clone();
    small.llc.size_kib = SMALL_LLC_KIB;
    let solver = |spec| Ok::<_, ValidateError>(Solver::new(full_chip(spec)?));
    Ok([solver(&prefetching)?, solver(&small)?, solver(&whole)?])
}

fn cpi_checks(pairs: &[(&MeasuredProgram, SoloFigures)]) -> Vec<ValidationCheck> {
    let mut checks = Vec::new();
    for (program, ours) in pairs {
        let name = &program.name;
        checks.push(CPI.check(
            format!("cpi/{name}"),
            format!("CPI of {name} alone, prefetchers on, whole LLC"),
            PublishedFigure::Value(program.figures[CPI_PREFETCH]),
            ours[CPI_PREFETCH],
        ));
    }
    for (id, machine, figure) in [
        ("on", "prefetchers on, whole LLC", CPI_PREFETCH),
        ("off", "prefetchers off, whole LLC", CPI_WHOLE),
        ("off-small", "prefetchers off, 3.5 MB of LLC", CPI_SMALL),
    ] {
        let mut sum = 0.0;
        let mut largest = (0.0_f64, "");
        for (program, ours) in pairs {
            let error = 100.0 * (ours[figure] / program.figures[figure] - 1.0);
            sum += error.abs();
            if error.abs() > largest.0.abs() {
                largest = (error, &program.name);
            }
        }
        let check = MEAN_CPI.check(
            format!("cpi-mean/{id}"),
            format!("CPI of {} programs alone, {machine}", pairs.len()),
            PublishedFigure::AtMost(MOST_PERCENT),
            sum / pairs.len() as f64,
        );
        checks.push(check.with_note(format!("largest: {} {:+.1} %", largest.1, largest.0)));
    }
    checks
}

#[derive(Deserialize)]
struct PublishedMixRow {
    program: String,
    branch: f64,
    load: f64,
    store: f64,
}

/// For each class the program that is farthest off: if that one agrees, all do.
fn mix_checks(data: &PublishedData) -> CheckResult {
    type MixShares = fn(&PublishedMixRow, &dyn Fn(fn(&MixSpec) -> f64) -> f64) -> (f64, f64);
    let classes: [(&str, MixShares); 3] = [
        ("branches", |row, ours| (row.branch, ours(|m| m.branch))),
        ("loads", |row, ours| (row.load, ours(|m| m.load))),
        ("stores", |row, ours| (row.store, ours(|m| m.store))),
    ];
    let rows = data.parse_rows::<PublishedMixRow>("spec2006-mix.csv")?;
    let mut checks = Vec::new();
    for (class, shares) in classes {
        let mut all = Vec::new();
        for row in &rows {
            let program = presets::find(&row.program)?;
            let length: f64 = program.phases.iter().map(|p| p.length_ginstr).sum();
            // The mean over the phases, weighted by their lengths, in percent.
            let ours = |share: fn(&MixSpec) -> f64| {
                let phases = program.phases.iter();
                let parts = phases.map(|p| p.length_ginstr / length * share(&p.mix));
                100.0 * parts.sum::<f64>()
            };
            let (published, ours) = shares(row, &ours);
            all.push((&row.program, published, ours));
        }
        let farthest = all
            .iter()
            .max_by(|a, b| (a.2 - a.1).abs().total_cmp(&(b.2 - b.1).abs()));
        checks.extend(farthest.map(|(program, published, ours)| {
            let what = format!(
                "share of {class} of {program}, the farthest off of {} programs",
                all.len()
            );
            let published = PublishedFigure::Value(*published);
            MIX.check(format!("mix/{class}"), what, published, *ours)
        }));
    }
    Ok(checks)
}
