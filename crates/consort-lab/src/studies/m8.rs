//! M8: canneal with fluidanimate, memory transactions by kind, together and alone.
//!
//! Keys. Table `headline`: rows `PROGRAM, MAPPING, KIND`. Table `transactions`: rows `PROGRAM/alone` and `PROGRAM/MAPPING`; columns `reads`,
//! `prefetched`, `fetches`, `writebacks`, `transactions`, `latency_cycles`, `speed_over_os`.
//! Figure `transactions`.

use super::mapping::measures::{KINDS, LATENCY, MappingMeasure, TRANSACTIONS};
use super::mapping::pair::PairView;
use super::mapping::plan::{MAPPINGS, ProgramNamePair};
use super::mapping::sweep::PairRuns;
use super::mapping::{notes, sweep};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;
use consort_experiment::mapping::OS;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    Ok(runs.output(
        vec![headline(&runs)?, table(file, &runs)?],
        vec![figure(file, &runs)?],
        vec![view(&runs).sentence(), notes::not_modelled()],
    ))
}

const PAIR: ProgramNamePair = ["canneal", "fluidanimate"];

fn view(runs: &PairRuns) -> PairView<'_> {
    PairView {
        runs,
        pair: PAIR,
        mappings: &MAPPINGS,
        measures: &KINDS,
    }
}

/// Alone, or under a mapping.
type MappingRowKey = (usize, Option<&'static str>);

fn rows() -> Vec<MappingRowKey> {
    let of = |place| {
        let mappings = MAPPINGS.into_iter().map(Some);
        std::iter::once(None)
            .chain(mappings)
            .map(move |m| (place, m))
    };
    (0..PAIR.len()).flat_map(of).collect()
}

fn key((place, mapping): MappingRowKey) -> String {
    format!("{}/{}", PAIR[place], mapping.unwrap_or("alone"))
}

fn cell(runs: &PairRuns, (place, mapping): MappingRowKey, measure: &MappingMeasure) -> Cell {
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

fn headline(runs: &PairRuns) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for row in rows() {
        for kind in KINDS.into_iter().chain([TRANSACTIONS]) {
            let mapping = row.1.unwrap_or("alone");
            let name = format!("{}, {mapping}, {}", PAIR[row.0], kind.title);
            headline.add(&name, kind.unit_name(), cell(runs, row, &kind))?;
        }
    }
    Ok(headline.into_table())
}

fn table(file: &StudyFile, runs: &PairRuns) -> Result<ReportTable, StudyError> {
    let shown: Vec<MappingMeasure> = KINDS.into_iter().chain([TRANSACTIONS, LATENCY]).collect();
    let row = |row: MappingRowKey| {
        let mut cells: Vec<Cell> = shown.iter().map(|m| cell(runs, row, m)).collect();
        cells.push(match row.1 {
            Some(mapping) => runs.speed(PAIR, row.0, mapping, OS),
            None => Cell::missing("the program is alone"),
        });
        (key(row), cells)
    };
    file.fill_table("transactions", rows().into_iter().map(row))
}

fn figure(file: &StudyFile, runs: &PairRuns) -> Result<Figure, StudyError> {
    let series = KINDS.map(|kind| {
        let cells = rows().into_iter().map(|row| cell(runs, row, &kind));
        (kind.title.to_owned(), cells.collect())
    });
    let groups = rows().into_iter().map(key).collect();
    file.bar_figure("transactions", runs.seeds, groups, series)
}
