//! Costs of refilling caches after a move on asymmetric chips.
//!
//! Two copies of each program change places on a large and a small core, as study A2 has them and
//! the source's hardware schedulers exchange threads: within a group, whose cores share an LLC, and
//! between two groups, every hardware quantum. What the exchange costs beyond registers and drain
//! is the refill.

use super::NAME;
use crate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use crate::data::data_error;
use crate::error::ValidateError;
use crate::group::GroupInputs;
use consort_lab::studies::ExchangePath;
use consort_sim::chip::Chip;
use consort_sim::program::presets;
use serde::Deserialize;
use std::sync::Arc;

const FILE: &str = "acmp-migration.csv";
const SOURCE: &str = "Markovic, Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric \
                      CMPs (UPC 2015), section 6.3.1";

/// The published averages are over other mixes of programs: the order of magnitude and half of it.
const MEAN: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: SOURCE,
    unit: "cycles",
    tolerance: Tolerance::relative(0.5),
};
/// Single programs between the published extremes, or a tenth of them beyond.
const SPAN: CheckTemplate<'static> = CheckTemplate {
    tolerance: Tolerance::relative(0.1),
    ..MEAN
};

/// Two groups of one large and three small cores.
const MACHINE: &str = "acmp-2+6";
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

pub(super) fn checks(inputs: &GroupInputs<'_>) -> Result<Vec<ValidationCheck>, ValidateError> {
    let spec = consort_sim::machine::presets::find(MACHINE)?;
    let chip = Arc::new(Chip::new(&spec, None)?);
    let mut checks = Vec::new();
    for line in inputs.data.parse_rows::<MigrationRow>(FILE)? {
        let path = ExchangePath::to_small(&chip, line.llc == "shared");
        let path = path.ok_or_else(|| data_error(FILE, format!("{MACHINE} has no such cores")))?;
        checks.extend(check_llc_kind(inputs, &chip, &line, &path)?);
    }
    Ok(checks)
}

fn check_llc_kind(
    inputs: &GroupInputs<'_>,
    chip: &Arc<Chip>,
    line: &MigrationRow,
    path: &ExchangePath,
) -> Result<Vec<ValidationCheck>, ValidateError> {
    let names = programs()?;
    let costs = inputs
        .context
        .map(&names, |name| refill_cycles(inputs, chip, name, path))?;
    let costs: Vec<f64> = costs.into_iter().collect::<Result<_, _>>()?;
    let mean = costs.iter().sum::<f64>() / costs.len() as f64;
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = costs.iter().copied().fold(0.0, f64::max);
    let what = |which: &str| format!("{which} refill after a move, {} LLC", line.llc);
    let id = |which: &str| format!("migration-{}/{which}", line.llc);
    let span = || PublishedFigure::Range {
        low: line.least,
        high: line.most,
    };
    let note = format!(
        "{} SPEC CPU2006 and SPLASH-2 programs, each beside a copy, on {MACHINE}",
        costs.len()
    );
    Ok(vec![
        MEAN.check(
            id("mean"),
            what("mean"),
            PublishedFigure::Value(line.mean),
            mean,
        )
        .with_note(note),
        SPAN.check(id("least"), what("smallest"), span(), least),
        SPAN.check(id("most"), what("largest"), span(), most),
    ])
}

fn programs() -> Result<Vec<String>, ValidateError> {
    let mut names = Vec::new();
    for name in presets::names() {
        if SUITES.contains(&presets::find(name)?.suite.as_str()) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Mean refill at an exchange, from several places in a program's phases.
fn refill_cycles(
    inputs: &GroupInputs<'_>,
    chip: &Arc<Chip>,
    name: &str,
    path: &ExchangePath,
) -> Result<f64, ValidateError> {
    let program = Arc::new(presets::find(name)?);
    let exchanges = inputs.context.by_scale(EXCHANGES[0], EXCHANGES[1]);
    let times = (PLACES, inputs.context.seed());
    Ok(path.refill_cycles(chip, &program, exchanges, times)?)
}
