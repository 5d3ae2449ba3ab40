//! FPU usage and L2 misses of programs alone on two SMT processors, as their PMUs tell them.

use super::NAME;
use crate::alone::{PmuMeans, measure_pmu_means};
use crate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use crate::data::data_error;
use crate::error::ValidateError;
use crate::group::GroupInputs;
use consort_core::stats::spearman;
use consort_sim::chip::Chip;
use consort_sim::program::presets;
use serde::Deserialize;
use std::sync::Arc;

const FILE: &str = "unit-occupancy.csv";
const SOURCE: &str = "Peternier et al., Improving Execution Unit Occupancy on SMT-based Processors \
                      through Hardware-aware Thread Scheduling, Tables 1 and 2";
const READOUT: &str = "l2-misses per 100 cycles";

/// Usage is a share of cycles: a tenth of all cycles is what tells classes apart.
const FPU: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: SOURCE,
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
/// Rank correlation; 0.7 is what is commonly called strong.
const RANKS: CheckTemplate<'static> = CheckTemplate {
    unit: "Spearman's rho",
    tolerance: Tolerance::absolute(0.0),
    ..FPU
};
const STRONG: f64 = 0.7;

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
    machine: usize,
    topic: CheckTemplate<'static>,
    published: fn(&OccupancyRow) -> &str,
    ours: fn(PmuMeans) -> f64,
}

const SERIES: [OccupancySeries; 4] = [
    OccupancySeries {
        id: "fpu-bulldozer",
        what: "FPU usage on bulldozer-6282se",
        machine: 0,
        topic: FPU,
        published: |line| &line.bulldozer_fpu,
        ours: PmuMeans::fp_usage,
    },
    OccupancySeries {
        id: "fpu-power7",
        what: "FPU usage on power7",
        machine: 1,
        topic: FP_OPS,
        published: |line| &line.power7_fpu,
        ours: PmuMeans::fp_usage,
    },
    OccupancySeries {
        id: "l2-bulldozer",
        what: "L2 misses on bulldozer-6282se",
        machine: 0,
        topic: L2,
        published: |line| &line.bulldozer_l2,
        ours: PmuMeans::readout,
    },
    OccupancySeries {
        id: "l2-power7",
        what: "L2 misses on power7",
        machine: 1,
        topic: L2,
        published: |line| &line.power7_l2,
        ours: PmuMeans::readout,
    },
];

/// Machines of the measurements.
const MACHINES: [&str; 2] = ["bulldozer-6282se", "power7"];

pub(super) fn checks(inputs: &GroupInputs<'_>) -> Result<Vec<ValidationCheck>, ValidateError> {
    let lines: Vec<OccupancyRow> = inputs.data.parse_rows(FILE)?;
    let reported = [
        measure_programs(inputs, &lines, MACHINES[0])?,
        measure_programs(inputs, &lines, MACHINES[1])?,
    ];
    let mut checks = Vec::new();
    for series in &SERIES {
        let reported = &reported[series.machine];
        let all: Vec<(&OccupancyRow, PublishedFigure, f64)> = lines
            .iter()
            .zip(reported)
            .filter_map(|(line, &reported)| {
                let published = parse_published((series.published)(line)).transpose()?;
                Some(published.map(|p| (line, p, (series.ours)(reported))))
            })
            .collect::<Result<_, _>>()?;
        checks.extend(series.checks(&all));
    }
    Ok(checks)
}

/// Every program alone on a machine.
fn measure_programs(
    inputs: &GroupInputs<'_>,
    lines: &[OccupancyRow],
    name: &str,
) -> Result<Vec<PmuMeans>, ValidateError> {
    let spec = consort_sim::machine::presets::find(name)?;
    let chip = Arc::new(Chip::new(&spec, None)?);
    let readout = READOUT.parse()?;
    let reported = inputs.context.map(lines, |line| {
        let program = Arc::new(presets::find(&line.program)?);
        measure_pmu_means(&chip, &program, readout, inputs.context.seed())
    })?;
    reported.into_iter().collect()
}

/// `0.5`, `<0.01`, or nothing where it was not measured.
fn parse_published(text: &str) -> Result<Option<PublishedFigure>, ValidateError> {
    let number = |text: &str| {
        let wrong = |_| {
            data_error(
                FILE,
                format!("'{text}' is neither a number nor '<' and one"),
            )
        };
        text.parse::<f64>().map_err(wrong)
    };
    Ok(match (text, text.strip_prefix('<')) {
        ("", _) => None,
        (_, Some(bound)) => Some(PublishedFigure::AtMost(number(bound)?)),
        (_, None) => Some(PublishedFigure::Value(number(text)?)),
    })
}

impl OccupancySeries {
    fn checks(&self, all: &[(&OccupancyRow, PublishedFigure, f64)]) -> Vec<ValidationCheck> {
        let programs = all.iter().map(|(line, published, ours)| {
            let id = format!("{}/{}", self.id, line.program);
            let what = format!("{}: {} alone", self.what, line.program);
            self.topic.check(id, what, published.clone(), *ours)
        });
        let classes = (self.topic.unit != L2.unit).then(|| self.check_classes(all));
        programs
            .chain([self.check_ranks(all)])
            .chain(classes)
            .collect()
    }

    /// Rank correlation over all programs, and the mean error of those with a number.
    fn check_ranks(&self, all: &[(&OccupancyRow, PublishedFigure, f64)]) -> ValidationCheck {
        let pairs: Vec<(f64, f64)> = all.iter().map(|(_, p, ours)| (rank(p), *ours)).collect();
        let exact = all
            .iter()
            .filter_map(|(_, published, ours)| match published {
                PublishedFigure::Value(value) => Some((ours - value).abs()),
                _ => None,
            });
        let errors: Vec<f64> = exact.collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let what = format!("{}: order of {} programs", self.what, all.len());
        let rho = spearman(&pairs).unwrap_or(f64::NAN);
        RANKS
            .check(
                format!("{}-ranks", self.id),
                what,
                PublishedFigure::AtLeast(STRONG),
                rho,
            )
            .with_note(format!("mean absolute error {mean:.3} {}", self.topic.unit))
    }

    /// Checks that every fp program uses the FPU more than every int program.
    fn check_classes(&self, all: &[(&OccupancyRow, PublishedFigure, f64)]) -> ValidationCheck {
        let of = |class: &'static str| all.iter().filter(move |(line, ..)| line.class == class);
        let pairs = of("fp").flat_map(|fp| of("int").map(move |int| fp.2 > int.2));
        let right: Vec<bool> = pairs.collect();
        let wrong = right.iter().filter(|&&right| !right).count() as f64;
        let order =
            PublishedFigure::Ordering("every fp program above every int program".to_owned());
        let what = format!("{}: fp and int programs", self.what);
        let topic = CheckTemplate {
            unit: "share of pairs",
            ..RANKS
        };
        let share = wrong / right.len() as f64;
        topic.check(format!("{}-classes", self.id), what, order, share)
    }
}

/// A bound ranks as half of it; bounds tie.
fn rank(published: &PublishedFigure) -> f64 {
    match *published {
        PublishedFigure::Value(value) => value,
        PublishedFigure::AtMost(bound) => 0.5 * bound,
        _ => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn no_program_file_knows_the_measurements() {
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
