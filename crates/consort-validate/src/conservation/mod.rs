//! Laws, over random workloads on every machine.

mod capacity;
mod runs;

use super::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use super::error::ValidateError;
use super::group::{GroupInputs, GroupOutput};
use consort_sim::chip::Chip;
use consort_sim::machine::presets;
use consort_sim::program::{self, ProgramSpec};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use std::sync::Arc;

/// The group's name.
pub(super) const NAME: &str = "conservation";

/// A law: nothing was published, it follows from what the figures mean.
const LAW: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "law",
    unit: "",
    tolerance: Tolerance::absolute(0.0),
};

/// Relative slack for sums in floating point.
const ROUNDING: f64 = 1e-9;

pub(super) fn run(inputs: &GroupInputs<'_>) -> Result<GroupOutput, ValidateError> {
    let world = PresetCatalog::new()?;
    let mut checks = capacity::checks(inputs, &world)?;
    checks.extend(runs::checks(inputs, &world)?);
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
    fn new() -> Result<Self, ValidateError> {
        let chip = |name| Ok::<_, ValidateError>(Arc::new(Chip::new(&presets::find(name)?, None)?));
        let program = |name| Ok::<_, ValidateError>(Arc::new(program::presets::find(name)?));
        Ok(Self {
            chips: presets::names().map(chip).collect::<Result<_, _>>()?,
            programs: program::presets::names()
                .map(program)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Cases of each machine: its number and its own source of randomness.
    fn cases(&self, each: u64, seed: u64, purpose: u64) -> Vec<(usize, u64)> {
        let machines = 0..self.chips.len();
        let numbers = machines.flat_map(|m| (0..each).map(move |i| (m, i)));
        let mixed = |(m, i): (usize, u64)| (m, seed ^ (purpose << 56 | (m as u64) << 40 | i << 20));
        numbers.map(mixed).collect()
    }
}

fn seeded_random(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

/// At most so much.
fn check_law(id: &str, what: String, most: f64, ours: f64) -> ValidationCheck {
    LAW.check(id, what, PublishedFigure::AtMost(most), ours)
}
