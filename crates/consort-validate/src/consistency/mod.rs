//! Figures that went into the profiles, found again: a consistency check, not a proof.

mod cpi;
mod misses;
mod mix;
mod scaling;

use super::alone::per_instruction;
use super::check::ValidationCheck;
use super::data::PublishedData;
use super::error::ValidateError;
use super::group::{GroupInputs, GroupOutput};
use consort_sim::chip::Chip;
use consort_sim::contention::Solver;
use consort_sim::program::{ProgramSpec, presets};
use serde::Deserialize;
use std::sync::Arc;

/// The group's name.
pub(super) const NAME: &str = "consistency";

/// Source of the memory behaviour of SPEC CPU2006.
const NAVARRO: &str = "Navarro-Torres et al., PLOS ONE 14(8):e0220135 (2019)";

/// LLC and L2 together where the cache was limited most, KiB (docs/profiles.md).
const SMALL_LLC_KIB: f64 = 4608.0;

pub(super) fn run(inputs: &GroupInputs<'_>) -> Result<GroupOutput, ValidateError> {
    let measured = read_measured_programs(inputs.data)?;
    let machines = SkylakeSolvers::new(inputs.data)?;
    let ours = inputs
        .context
        .map(&measured, |program| machines.solve_alone(&program.name))?;
    let ours: Vec<SoloCpiFigures> = ours.into_iter().collect::<Result<_, _>>()?;
    let pairs: Vec<(&MeasuredProgram, &SoloCpiFigures)> = measured.iter().zip(&ours).collect();
    let parts: [Vec<ValidationCheck>; 4] = [
        cpi::checks(&pairs),
        misses::checks(&pairs),
        mix::checks(inputs.data)?,
        scaling::checks(inputs)?,
    ];
    Ok(GroupOutput {
        checks: parts.into_iter().flatten().collect(),
        notes: vec![
            "CPI, misses, instruction mixes and numbers of threads went into the program files \
             (docs/profiles.md); agreement shows that nothing was lost on the way."
                .to_owned(),
        ],
        ..GroupOutput::default()
    })
}

/// A published line: one input.
#[derive(Clone, Debug, Deserialize)]
struct SkylakeRow {
    program: String,
    ginstr: f64,
    cpi_prefetch: f64,
    cpi_small: f64,
    cpi_whole: f64,
    mpki_small: f64,
    mpki_whole: f64,
}

/// One program: means over its inputs, weighted by instructions.
#[derive(Clone, Debug, Default, PartialEq)]
struct MeasuredProgram {
    name: String,
    ginstr: f64,
    figures: SoloCpiFigures,
}

/// CPI with prefetchers; CPI and LLC misses per kilo-instruction without, small and whole LLC.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct SoloCpiFigures {
    cpi_prefetch: f64,
    cpi_small: f64,
    cpi_whole: f64,
    mpki_small: f64,
    mpki_whole: f64,
}

fn read_measured_programs(data: &PublishedData) -> Result<Vec<MeasuredProgram>, ValidateError> {
    let mut all: Vec<MeasuredProgram> = Vec::new();
    for line in data.parse_rows::<SkylakeRow>("spec2006-skylake.csv")? {
        match all.iter_mut().find(|m| m.name == line.program) {
            Some(known) => known.add_row(&line),
            None => {
                let mut new = MeasuredProgram {
                    name: line.program.clone(),
                    ..MeasuredProgram::default()
                };
                new.add_row(&line);
                all.push(new);
            }
        }
    }
    Ok(all)
}

impl MeasuredProgram {
    fn add_row(&mut self, line: &SkylakeRow) {
        self.ginstr += line.ginstr;
        let part = line.ginstr / self.ginstr;
        let sums = &mut self.figures;
        let toward = |mean: &mut f64, value: f64| *mean += part * (value - *mean);
        toward(&mut sums.cpi_prefetch, line.cpi_prefetch);
        toward(&mut sums.cpi_small, line.cpi_small);
        toward(&mut sums.cpi_whole, line.cpi_whole);
        toward(&mut sums.mpki_small, line.mpki_small);
        toward(&mut sums.mpki_whole, line.mpki_whole);
    }
}

/// The measured machine as it was measured.
struct SkylakeSolvers {
    prefetching: Solver,
    whole: Solver,
    small: Solver,
}

impl SkylakeSolvers {
    fn new(data: &PublishedData) -> Result<Self, ValidateError> {
        let full = data.parse_machine("skylake-sp.toml")?;
        let mut whole = full.clone();
        for core in whole.core_types.values_mut() {
            core.prefetcher = None;
        }
        let mut small = whole.clone();
        small.llc.size_kib = SMALL_LLC_KIB;
        let solver = |spec| Ok::<_, ValidateError>(Solver::new(Arc::new(Chip::new(spec, None)?)));
        Ok(Self {
            prefetching: solver(&full)?,
            whole: solver(&whole)?,
            small: solver(&small)?,
        })
    }

    fn solve_alone(&self, name: &str) -> Result<SoloCpiFigures, ValidateError> {
        let program = presets::find(name)?;
        Ok(SoloCpiFigures {
            cpi_prefetch: cpi(&self.prefetching, &program),
            cpi_small: cpi(&self.small, &program),
            cpi_whole: cpi(&self.whole, &program),
            mpki_small: mpki(&self.small, &program),
            mpki_whole: mpki(&self.whole, &program),
        })
    }
}

fn cpi(solver: &Solver, program: &ProgramSpec) -> f64 {
    per_instruction(solver, program, |rates| rates.cpi)
}

fn mpki(solver: &Solver, program: &ProgramSpec) -> f64 {
    1000.0 * per_instruction(solver, program, |rates| rates.flow.llc_misses)
}
