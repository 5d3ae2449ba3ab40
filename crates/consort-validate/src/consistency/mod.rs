//! Figures that went into the profiles, found again: a consistency check, not a proof.

mod cpi;
mod misses;
mod mix;
mod scaling;

use super::alone::per_instruction;
use super::check::Check;
use super::data::Data;
use super::error::ValidateError;
use super::group::{GroupOutput, Inputs};
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

pub(super) fn run(inputs: &Inputs<'_>) -> Result<GroupOutput, ValidateError> {
    let measured = measured(inputs.data)?;
    let machines = Machines::new(inputs.data)?;
    let ours = inputs
        .context
        .map(&measured, |program| machines.alone(&program.name))?;
    let ours: Vec<Alone> = ours.into_iter().collect::<Result<_, _>>()?;
    let pairs: Vec<(&Measured, &Alone)> = measured.iter().zip(&ours).collect();
    let parts: [Vec<Check>; 4] = [
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
struct Line {
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
struct Measured {
    name: String,
    ginstr: f64,
    figures: Alone,
}

/// CPI with prefetchers; CPI and LLC misses per kilo-instruction without, small and whole LLC.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Alone {
    cpi_prefetch: f64,
    cpi_small: f64,
    cpi_whole: f64,
    mpki_small: f64,
    mpki_whole: f64,
}

fn measured(data: &Data) -> Result<Vec<Measured>, ValidateError> {
    let mut all: Vec<Measured> = Vec::new();
    for line in data.rows::<Line>("spec2006-skylake.csv")? {
        match all.iter_mut().find(|m| m.name == line.program) {
            Some(known) => known.add(&line),
            None => {
                let mut new = Measured {
                    name: line.program.clone(),
                    ..Measured::default()
                };
                new.add(&line);
                all.push(new);
            }
        }
    }
    Ok(all)
}

impl Measured {
    fn add(&mut self, line: &Line) {
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
struct Machines {
    prefetching: Solver,
    whole: Solver,
    small: Solver,
}

impl Machines {
    fn new(data: &Data) -> Result<Self, ValidateError> {
        let full = data.machine("skylake-sp.toml")?;
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

    fn alone(&self, name: &str) -> Result<Alone, ValidateError> {
        let program = presets::find(name)?;
        Ok(Alone {
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
