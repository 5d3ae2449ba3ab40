//! FPU usage and L2 misses of programs alone on two SMT processors, as their PMUs show them.

use super::NAME;
use crate::simulate::{chips, programs};
use crate::validate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use crate::validate::data::{ValidateError, data_error};
use crate::validate::simulated::{PmuMeans, measure_pmu_means};
use crate::validate::{CheckResult, GroupInputs};
use consort_core::stats::spearman;
use serde::Deserialize;

const FILE: &str = "unit-occupancy.csv";

/// Usage is a share of cycles: a tenth of all cycles separates classes.
const FPU: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "Peternier et al., Improving Execution Unit Occupancy on SMT-based Processors \
             through Hardware-aware Thread Scheduling, Tables 1 and 2",
    unit: "share of cycles",
    tolerance: Tolerance::absolute(0.10),
};
/// POWER7's usage is operations per cycle of at most four; the same tenth.
const FP_OPS: CheckTemplate<'static> = CheckTemplate {
    unit: "operations/cycle",
    ..FPU
};
/// Half as many again, or a difference of less than one miss per 10,000 cycles.
const L2: CheckTemplate<'static> = CheckTemplate {
    unit: "misses/100 cycles",
    tolerance: Tolerance::relative_above(0.5, 0.01),
    ..FPU
};
/// Rank correlation; 0.7 is commonly called strong.
const RANKS: CheckTemplate<'static> = CheckTemplate {
    unit: "Spearman's rho",
    tolerance: Tolerance::absolute(0.0),
    ..FPU
};
const STRONG: f64 = 0.7;
/// Order of the classes of programs.
const CLASSES: CheckTemplate<'static> = CheckTemplate {
    unit: "share of pairs",
    ..RANKS
};

#[derive(Deserialize)]
struct OccupancyRow {
    class: String,
    program: String,
    bulldozer_fpu: String,
    bulldozer_l2: String,
    power7_fpu: String,
    power7_l2: String,
}

/// A quantity on a machine.
struct OccupancySeries {
    id: &'static str,
    what: &'static str,
    machine: &'static str,
    template: CheckTemplate<'static>,
    published: fn(&OccupancyRow) -> &str,
    ours: fn(PmuMeans) -> f64,
}

const SERIES: [OccupancySeries; 4] = [
    OccupancySeries {
        id: "fpu-bulldozer",
        what: "FPU usage on bulldozer-6282se",
        machine: "bulldozer-6282se",
        template: FPU,
        published: |row| &row.bulldozer_fpu,
        ours: PmuMeans::fp_usage,
    },
    OccupancySeries {
        id: "fpu-power7",
        what: "FPU usage on power7",
        machine: "power7",
        template: FP_OPS,
        published: |row| &row.power7_fpu,
        ours: PmuMeans::fp_usage,
    },
    OccupancySeries {
        id: "l2-bulldozer",
        what: "L2 misses on bulldozer-6282se",
        machine: "bulldozer-6282se",
        template: L2,
        published: |row| &row.bulldozer_l2,
        ours: PmuMeans::readout,
    },
    OccupancySeries {
        id: "l2-power7",
        what: "L2 misses on power7",
        machine: "power7",
        template: L2,
        published: |row| &row.power7_l2,
        ours: PmuMeans::readout,
    },
];

pub(super) fn checks(inputs: &GroupInputs<'_>) -> CheckResult {
    let rows: Vec<OccupancyRow> = inputs.data.parse_rows(FILE)?;
    let mut measured = Vec::new();
    for machine in ["bulldozer-6282se", "power7"] {
        let chip = chips::chip(machine)?;
        let readout = format!("{} per 100 cycles", chips::l2_event(chip.spec()).1).parse()?;
        let means = inputs.map(&rows, |row| {
            let program = programs::find(&row.program)?;
            measure_pmu_means(&chip, &program, readout, inputs.context.seed())
        })?;
        measured.push((machine, means));
    }
    let mut checks = Vec::new();
    for series in &SERIES {
        for (_, means) in measured.iter().filter(|(name, _)| *name == series.machine) {
            let mut figures = Vec::new();
            for (row, &means) in rows.iter().zip(means) {
                if let Some(published) = parse_published((series.published)(row))? {
                    figures.push((row, published, (series.ours)(means)));
                }
            }
            checks.extend(series.checks(&figures));
        }
    }
    Ok(checks)
}

/// `0.5`, `<0.01`, or nothing if it was not measured.
fn parse_published(text: &str) -> Result<Option<PublishedFigure>, ValidateError> {
    let number = |text: &str| {
        let message = || format!("'{text}' is neither a number nor '<' and one");
        text.parse::<f64>().map_err(|_| data_error(FILE, message()))
    };
    Ok(match (text, text.strip_prefix('<')) {
        ("", _) => None,
        (_, Some(bound)) => Some(PublishedFigure::AtMost(number(bound)?)),
        (_, None) => Some(PublishedFigure::Value(number(text)?)),
    })
}

impl OccupancySeries {
    /// Checks of each program, of the order of all, and of that of their classes.
    fn checks(&self, figures: &[(&OccupancyRow, PublishedFigure, f64)]) -> Vec<ValidationCheck> {
        let (mut checks, mut pairs, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        for (row, published, ours) in figures {
            let program = &row.program;
            checks.push(self.template.check(
                format!("{}/{program}", self.id),
                format!("{}: {program} alone", self.what),
                published.clone(),
                *ours,
            ));
            // A bound ranks as half of it; bounds tie.
            let rank = match *published {
                PublishedFigure::Value(value) => {
                    errors.push((ours - value).abs());
                    value
                }
                PublishedFigure::AtMost(bound) => 0.5 * bound,
                _ => f64::NAN,
            };
            pairs.push((rank, *ours));
        }
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let unit = self.template.unit;
        let check = RANKS.check(
            format!("{}-ranks", self.id),
            format!("{}: order of {} programs", self.what, figures.len()),
            PublishedFigure::AtLeast(STRONG),
            spearman(&pairs).unwrap_or(f64::NAN),
        );
        checks.push(check.with_note(format!("mean absolute error {mean:.3} {unit}")));
        if unit != L2.unit {
            let (mut wrong, mut all) = (0.0, 0.0);
            for fp in figures.iter().filter(|(row, ..)| row.class == "fp") {
                for int in figures.iter().filter(|(row, ..)| row.class == "int") {
                    all += 1.0;
                    if fp.2 <= int.2 {
                        wrong += 1.0;
                    }
                }
            }
            let order = "every fp program above every int program".to_owned();
            checks.push(CLASSES.check(
                format!("{}-classes", self.id),
                format!("{}: fp and int programs", self.what),
                PublishedFigure::Ordering(order),
                wrong / all,
            ));
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_sim::program::presets;

    #[test]
    fn bounds_and_gaps_are_understood() {
        assert_eq!(parse_published("").unwrap(), None);
        assert_eq!(
            parse_published("<0.01").unwrap(),
            Some(PublishedFigure::AtMost(0.01))
        );
        assert_eq!(
            parse_published("0.5").unwrap(),
            Some(PublishedFigure::Value(0.5))
        );
        let error = parse_published("~1").unwrap_err().to_string();
        assert!(
            error.contains("unit-occupancy.csv") && error.contains("'~1'"),
            "{error}"
        );
    }

    #[test]
    fn misses_of_power7_are_per_100_cycles() {
        let rows = include_str!("../../../data/unit-occupancy.csv").lines();
        let published = include_str!("../../../data/published.csv");
        let cells = rows.map(|row| row.split(',').collect::<Vec<_>>());
        let mut compared = 0;
        for row in cells.filter(|row| row.len() == 6 && !row[5].is_empty()) {
            let name = format!("W2,power7 L2 misses {},", row[1]);
            let Some((_, printed)) = published.split_once(&name) else {
                continue;
            };
            if let (Ok(ours), Ok(per_cycle)) = (
                row[5].parse::<f64>(),
                printed.split(',').next().unwrap().parse::<f64>(),
            ) {
                assert!((ours - 100.0 * per_cycle).abs() < 1e-9, "{row:?}");
                compared += 1;
            }
        }
        assert_eq!(compared, 12);
    }

    #[test]
    fn program_files_do_not_use_these_measurements() {
        for name in presets::names() {
            let program = presets::find(name).unwrap();
            let mut sources = program.sources.values();
            assert!(
                !sources.any(|source| source.contains("Peternier")),
                "{name}"
            );
        }
    }
}
