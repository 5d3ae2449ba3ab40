//! Placements of spinning threads by the model of the operating system, and its evening out of
//! those that remain when others end, beside a real kernel.

mod measurement;
mod model;
mod survivors;

use super::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use super::error::ValidateError;
use super::group::{GroupInputs, GroupOutput};
use super::statistics::{ClassCounts, distance, noise_distance, share, total};
use consort_data::{Cell, ReportColumn, ReportTable};
use consort_sim::chip::Chip;
use measurement::{PlacementCase, PlacementMeasurement};
use std::sync::Arc;

/// The group's name.
pub(super) const NAME: &str = "placement";

/// Agreement: no farther apart than two samples of one distribution would be in 95 of 100 cases.
const DISTANCE: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "measured: linux-placements.toml",
    unit: "total variation",
    tolerance: Tolerance::distance(),
};

pub(super) fn run(inputs: &GroupInputs<'_>) -> Result<GroupOutput, ValidateError> {
    let measured = PlacementMeasurement::read(inputs.data)?;
    let spec = inputs.data.parse_machine("forms-machine.toml")?;
    let chip = Arc::new(Chip::new(&spec, None)?);
    let repetitions = inputs.context.by_scale(50, 400);
    let cases = inputs.context.map(&measured.cases, |case| {
        model::count_placements(&chip, case, repetitions, inputs.context.seed())
    })?;
    let model: Vec<ClassCounts> = cases.into_iter().collect::<Result<_, _>>()?;
    let pairs: Vec<(&PlacementCase, &ClassCounts)> = measured.cases.iter().zip(&model).collect();
    let seed = inputs.context.seed();
    let starts = pairs
        .iter()
        .map(|(case, ours)| check_case(case, ours, seed));
    let survivors = survivors::compare_survivors(inputs, &spec, &measured.ends)?;
    let after = survivors.iter().map(|pair| pair.check(seed));
    let starts_table = shares_table(
        "placements",
        "Threads per PU of each core, fullest first: shares of repetitions",
        pairs
            .iter()
            .map(|(case, ours)| (case.id(), &case.counts, *ours)),
    )?;
    let ends_table = shares_table(
        "ends",
        "The same of those that remain when half of as many processes as PUs end",
        survivors
            .iter()
            .map(|pair| (pair.id.clone(), &pair.kernel, &pair.model)),
    )?;
    Ok(GroupOutput {
        checks: starts.chain(after).collect(),
        tables: vec![starts_table, ends_table],
        notes: vec![measured.note()],
        ..GroupOutput::default()
    })
}

fn check_case(case: &PlacementCase, ours: &ClassCounts, seed: u64) -> ValidationCheck {
    let noise = noise_distance(&case.counts, ours, seed);
    let what = format!(
        "placements of {} spinning {} on 4 cores x 2, {} ms after the start",
        case.threads, case.arrival, case.after_ms
    );
    let note = format!(
        "{} repetitions, {} of the kernel",
        total(ours),
        total(&case.counts)
    );
    let far = distance(&case.counts, ours);
    DISTANCE
        .check(case.id(), what, PublishedFigure::AtMost(noise), far)
        .with_note(note)
}

/// Shares of every class of placements on both sides, by case: the kernel's counts, then the model's.
fn shares_table<'a>(
    name: &str,
    title: &str,
    cases: impl Iterator<Item = (String, &'a ClassCounts, &'a ClassCounts)>,
) -> Result<ReportTable, ValidateError> {
    let columns = vec![
        ReportColumn::plain("case", "case"),
        ReportColumn::plain("placement", "placement"),
        ReportColumn::with_unit("kernel", "kernel", "%"),
        ReportColumn::with_unit("model", "model", "%"),
    ];
    let mut table = ReportTable::new(name, title, columns)?;
    for (id, kernel, model) in cases {
        let mut classes: Vec<&String> = kernel.keys().chain(model.keys()).collect();
        classes.sort();
        classes.dedup();
        for class in classes {
            let percent = |counts: &ClassCounts| Cell::from(100.0 * share(counts, class));
            let cells = vec![
                id.as_str().into(),
                class.as_str().into(),
                percent(kernel),
                percent(model),
            ];
            table.push(&format!("{id}/{}", class.replace(' ', "_")), cells)?;
        }
    }
    Ok(table)
}
