//! Placements of spinning threads by the model of the operating system, and its evening out of
//! those that remain when others end, beside a real kernel.

mod ends;
mod measured;
mod model;

use super::check::{Check, Published, Tolerance, Topic};
use super::error::ValidateError;
use super::group::{GroupOutput, Inputs};
use super::statistics::{Counts, distance, noise, share, total};
use consort_report::{Cell, Column, Table};
use consort_sim::chip::Chip;
use measured::{Case, Measured};
use std::sync::Arc;

/// The group's name.
pub(super) const NAME: &str = "placement";

/// Agreement: no farther apart than two samples of one distribution would be in 95 of 100 cases.
const DISTANCE: Topic<'static> = Topic {
    group: NAME,
    source: "measured: linux-placements.toml",
    unit: "total variation",
    tolerance: Tolerance::distance(),
};

pub(super) fn run(inputs: &Inputs<'_>) -> Result<GroupOutput, ValidateError> {
    let measured = Measured::read(inputs.data)?;
    let spec = inputs.data.machine("forms-machine.toml")?;
    let chip = Arc::new(Chip::new(&spec, None)?);
    let repetitions = inputs.context.by_scale(50, 400);
    let cases = inputs.context.map(&measured.cases, |case| {
        model::placements(&chip, case, repetitions, inputs.context.seed())
    })?;
    let model: Vec<Counts> = cases.into_iter().collect::<Result<_, _>>()?;
    let pairs: Vec<(&Case, &Counts)> = measured.cases.iter().zip(&model).collect();
    let seed = inputs.context.seed();
    let starts = pairs.iter().map(|(case, ours)| check(case, ours, seed));
    let survivors = ends::compare(inputs, &spec, &measured.ends)?;
    let after = survivors.iter().map(|pair| pair.check(seed));
    let starts_table = shares(
        "placements",
        "Threads per PU of each core, fullest first: shares of repetitions",
        pairs
            .iter()
            .map(|(case, ours)| (case.id(), &case.counts, *ours)),
    )?;
    let ends_table = shares(
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

fn check(case: &Case, ours: &Counts, seed: u64) -> Check {
    let noise = noise(&case.counts, ours, seed);
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
        .check(case.id(), what, Published::AtMost(noise), far)
        .noting(note)
}

/// Shares of every class of placements on both sides, by case: the kernel's counts, then the model's.
fn shares<'a>(
    name: &str,
    title: &str,
    cases: impl Iterator<Item = (String, &'a Counts, &'a Counts)>,
) -> Result<Table, ValidateError> {
    let columns = vec![
        Column::plain("case", "case"),
        Column::plain("placement", "placement"),
        Column::with_unit("kernel", "kernel", "%"),
        Column::with_unit("model", "model", "%"),
    ];
    let mut table = Table::new(name, title, columns)?;
    for (id, kernel, model) in cases {
        let mut classes: Vec<&String> = kernel.keys().chain(model.keys()).collect();
        classes.sort();
        classes.dedup();
        for class in classes {
            let percent = |counts: &Counts| Cell::from(100.0 * share(counts, class));
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
