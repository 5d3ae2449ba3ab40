//! M8: canneal with fluidanimate, memory transactions by kind, together and alone.
//!
//! Keys. Table `headline`: rows `PROGRAM, MAPPING, KIND`. Table `transactions`: rows `PROGRAM/alone` and `PROGRAM/MAPPING`; columns `reads`,
//! `prefetched`, `fetches`, `writebacks`, `transactions`, `latency_cycles`, `speed_over_os`.
//! Figure `transactions`.

use super::mapping::measures::{KINDS, LATENCY, Measure, TRANSACTIONS};
use super::mapping::pair::PairView;
use super::mapping::plan::{MAPPINGS, Pair};
use super::mapping::sweep::Runs;
use super::mapping::{notes, sweep};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::Context;
use consort_experiment::mapping::OS;
use consort_report::{Cell, Figure, Headline, Table};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, file: &StudyFile) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    Ok(runs.output(
        vec![headline(&runs)?, table(file, &runs)?],
        vec![figure(file, &runs)?],
        vec![view(&runs).sentence(), notes::not_modelled()],
    ))
}

const PAIR: Pair = ["canneal", "fluidanimate"];

fn view(runs: &Runs) -> PairView<'_> {
    PairView {
        runs,
        pair: PAIR,
        mappings: &MAPPINGS,
        measures: &KINDS,
    }
}

/// Alone, or under a mapping.
type Row = (usize, Option<&'static str>);

fn rows() -> Vec<Row> {
    let of = |place| {
        let mappings = MAPPINGS.into_iter().map(Some);
        std::iter::once(None)
            .chain(mappings)
            .map(move |m| (place, m))
    };
    (0..PAIR.len()).flat_map(of).collect()
}

fn key((place, mapping): Row) -> String {
    format!("{}/{}", PAIR[place], mapping.unwrap_or("alone"))
}

fn cell(runs: &Runs, (place, mapping): Row, measure: &Measure) -> Cell {
    match mapping {
        Some(mapping) => runs.cell(PAIR, place, mapping, measure.value),
        None => {
            let alone = runs.alone(PAIR[place]);
            alone
                .map_or(f64::NAN, |alone| (measure.value)(&alone.with))
                .into()
        }
    }
}

fn headline(runs: &Runs) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for row in rows() {
        for kind in KINDS.into_iter().chain([TRANSACTIONS]) {
            let mapping = row.1.unwrap_or("alone");
            let name = format!("{}, {mapping}, {}", PAIR[row.0], kind.title);
            headline.add(&name, kind.unit_name(), cell(runs, row, &kind))?;
        }
    }
    Ok(headline.into_table())
}

fn table(file: &StudyFile, runs: &Runs) -> Result<Table, StudyError> {
    let shown: Vec<Measure> = KINDS.into_iter().chain([TRANSACTIONS, LATENCY]).collect();
    let row = |row: Row| {
        let mut cells: Vec<Cell> = shown.iter().map(|m| cell(runs, row, m)).collect();
        cells.push(match row.1 {
            Some(mapping) => runs.speed(PAIR, row.0, mapping, OS),
            None => Cell::missing("the program is alone"),
        });
        (key(row), cells)
    };
    file.table("transactions", rows().into_iter().map(row))
}

fn figure(file: &StudyFile, runs: &Runs) -> Result<Figure, StudyError> {
    let series = KINDS.map(|kind| {
        let cells = rows().into_iter().map(|row| cell(runs, row, &kind));
        (kind.title.to_owned(), cells.collect())
    });
    let groups = rows().into_iter().map(key).collect();
    file.bars("transactions", runs.seeds, groups, series)
}
