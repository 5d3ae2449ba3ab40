//! What refilling caches after a move costs on asymmetric chips.
//!
//! Each program alone is moved to and fro between a large and a small core, as the source's
//! schedulers exchange threads: within a group, whose cores share an LLC, and between two groups,
//! every software quantum. What it pays beyond the switch itself is the refill.

use super::NAME;
use crate::experiment::{Quiet, machine};
use crate::validate::alone::{instance, once};
use crate::validate::check::{Check, Published, Tolerance, Topic};
use crate::validate::data::broken;
use crate::validate::error::ValidateError;
use crate::validate::group::Inputs;
use consort_core::{Machine, Placement, Plan, PuId, PuSet};
use consort_sim::chip::Chip;
use consort_sim::machine::Pipeline;
use consort_sim::program::presets;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

const FILE: &str = "acmp-migration.csv";
const SOURCE: &str = "Markovic, Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric \
                      CMPs (UPC 2015), section 6.3.1";

/// The published averages are over other mixes of programs: the order of magnitude and half of it.
const MEAN: Topic<'static> = Topic {
    group: NAME,
    source: SOURCE,
    unit: "cycles",
    tolerance: Tolerance::relative(0.5),
};
/// Single programs between the published extremes, or a tenth of them beyond.
const SPAN: Topic<'static> = Topic {
    tolerance: Tolerance::relative(0.1),
    ..MEAN
};

/// Two groups of one large and three small cores.
const MACHINE: &str = "acmp-2+6";
/// Software quantum of the source, ns.
const QUANTUM_NS: u64 = 4_000_000;
/// Suites that the source used.
const SUITES: [&str; 2] = ["spec2006", "splash2"];

#[derive(Deserialize)]
struct Line {
    llc: String,
    mean: f64,
    least: f64,
    most: f64,
}

pub(super) fn checks(inputs: &Inputs<'_>) -> Result<Vec<Check>, ValidateError> {
    let spec = consort_sim::machine::presets::find(MACHINE)?;
    let chip = Arc::new(Chip::new(&spec, None)?);
    let mut checks = Vec::new();
    for line in inputs.data.rows::<Line>(FILE)? {
        let pus = large_and_small(&chip, line.llc == "shared");
        let pus = pus.ok_or_else(|| broken(FILE, format!("{MACHINE} has no such cores")))?;
        checks.extend(of_kind(inputs, &chip, &line, pus)?);
    }
    Ok(checks)
}

fn of_kind(
    inputs: &Inputs<'_>,
    chip: &Arc<Chip>,
    line: &Line,
    pus: [u32; 2],
) -> Result<Vec<Check>, ValidateError> {
    let names = programs()?;
    let costs = inputs
        .context
        .map(&names, |name| refill_cycles(inputs, chip, name, pus))?;
    let costs: Vec<f64> = costs.into_iter().collect::<Result<_, _>>()?;
    let mean = costs.iter().sum::<f64>() / costs.len() as f64;
    let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
    let most = costs.iter().copied().fold(0.0, f64::max);
    let what = |which: &str| format!("{which} refill after a move, {} LLC", line.llc);
    let id = |which: &str| format!("migration-{}/{which}", line.llc);
    let span = || Published::Range {
        low: line.least,
        high: line.most,
    };
    let note = format!(
        "{} SPEC CPU2006 and SPLASH-2 programs alone on {MACHINE}",
        costs.len()
    );
    Ok(vec![
        MEAN.check(id("mean"), what("mean"), Published::Value(line.mean), mean)
            .noting(note),
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

/// A large and a small core, in one LLC domain or in two.
fn large_and_small(chip: &Chip, shared: bool) -> Option<[u32; 2]> {
    let is_large = |pu: &usize| {
        let core = chip.core_spec(chip.places()[*pu]);
        core.pipeline == Pipeline::OutOfOrder
    };
    let llc = |pu: usize| chip.places()[pu].llc;
    let mut pus = 0..chip.places().len();
    let large = pus.clone().find(is_large)?;
    let small = pus.find(|pu| !is_large(pu) && (llc(*pu) == llc(large)) == shared)?;
    Some([large as u32, small as u32])
}

/// Mean cycles per move beyond the switch.
fn refill_cycles(
    inputs: &Inputs<'_>,
    chip: &Arc<Chip>,
    name: &str,
    pus: [u32; 2],
) -> Result<f64, ValidateError> {
    let program = Arc::new(presets::find(name)?);
    let moves = inputs.context.by_scale(50, 500);
    let settings = once(inputs.context.seed(), "linux");
    let work = [instance(&program, 1, 1e18)];
    let mut machine = machine(chip, &work, &settings, QUANTUM_NS, Box::<Quiet>::default())?;
    let mut thread = None;
    for generation in 1..=moves {
        let seen = machine.observe()?;
        thread = thread.or_else(|| Some(seen?.threads.first()?.id));
        let pu = pus[(generation % 2) as usize];
        let mut only = PuSet::new();
        only.insert(PuId(pu));
        let placed = thread.map(|id| (id, Placement::Restricted(only)));
        machine.enact(&Plan {
            generation,
            quantum_ns: None,
            placements: placed.into_iter().collect::<BTreeMap<_, _>>(),
            report: consort_core::plan::PlanReport::default(),
            ..Plan::default()
        })?;
    }
    machine.observe()?;
    let counts = thread.and_then(|id| machine.oracle().counts(id));
    let counts = counts.unwrap_or_default();
    let hz = chip.frequency_hz(chip.places()[pus[0] as usize]);
    let switches = counts.context_switches as f64 * chip.spec().os.switch_cycles;
    let paid = counts.overhead_s * hz - switches + counts.refill_cycles;
    Ok(paid / counts.migrations.max(1) as f64)
}
