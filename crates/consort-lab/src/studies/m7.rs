//! M7: prefetched lines, memory transactions and memory latency, the least and the most of each
//! program over mappings and co-runners.
//!
//! Keys. Table `headline`: rows `PROGRAM, MEASURE, least` and `most`, and `PROGRAM alone, CHARACTERISTIC`.
//! Table `ranges`: rows programs; columns `prefetched`, `transactions`, `latency`, each with
//! `-min` and `-max` behind it (interval over seeds), and `latency-max-at`. Table `alone`, the
//! source's Table III: rows programs; columns `bandwidth_mb_s`, `effectiveness_percent`,
//! `excess_percent`, `fraction_percent`, `data_sharing_percent`, `io_percent`, `sibling_percent`,
//! `switches_hz`. Figures `prefetched`, `transactions`, `latency`.

use super::mapping::measures::{LATENCY, MappingMeasure, PREFETCHED, TRANSACTIONS};
use super::mapping::plan::{MAPPINGS, PROGRAMS, ProgramNamePair};
use super::mapping::sweep::{self, PairRuns};
use crate::frame::{interval_cell, number_or_missing};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::AloneCharacteristics;
use consort_core::stats::mean;
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;
use consort_experiment::mapping::CharacterisedProgram;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    let figure = |measure: &MappingMeasure| extremes_figure(file, &runs, *measure);
    Ok(runs.output(
        vec![
            headline(&runs)?,
            file.fill_table(
                "ranges",
                PROGRAMS.map(|program| (program, ranges_row(&runs, program))),
            )?,
            file.fill_table("alone", alone_rows(&runs))?,
        ],
        SHOWN.iter().map(figure).collect::<Result<_, _>>()?,
        vec![sentence(&runs)],
    ))
}

const SHOWN: [MappingMeasure; 3] = [PREFETCHED, TRANSACTIONS, LATENCY];

/// A co-runner and a mapping of a program, and its values by seed.
struct CharacteristicCase {
    co_runner: &'static str,
    mapping: &'static str,
    values: Vec<f64>,
}

/// Cases with the smallest and the largest mean; none for a program without any.
fn extremes(
    runs: &PairRuns,
    program: &str,
    measure: MappingMeasure,
) -> Option<[CharacteristicCase; 2]> {
    let of = |(pair, place): (ProgramNamePair, usize), mapping: &'static str| CharacteristicCase {
        co_runner: pair[1 - place],
        mapping,
        values: runs.values(pair, place, mapping, measure.value),
    };
    let all = || {
        let cases = runs.with(program);
        let cases = cases.flat_map(|case| MAPPINGS.map(|mapping| of(case, mapping)));
        cases.filter(|case| case.values.iter().all(|value| value.is_finite()))
    };
    let size = |case: &CharacteristicCase| mean(&case.values).unwrap_or(0.0);
    let least = all().min_by(|a, b| size(a).total_cmp(&size(b)))?;
    let most = all().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    Some([least, most])
}

fn headline(runs: &PairRuns) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for measure in SHOWN {
        for program in PROGRAMS {
            let cells = ends(runs, program, measure);
            for (end, cell) in ["least", "most"].into_iter().zip(cells) {
                let row = format!("{program}, {}, {end}", measure.title);
                headline.add(&row, measure.unit_name(), cell)?;
            }
        }
    }
    for (program, alone) in PROGRAMS.iter().zip(&runs.alone) {
        for (title, unit, value) in ITEMS {
            let row = format!("{program} alone, {title}");
            let cell = number_or_missing(value(&alone.characteristics), "it misses nothing");
            headline.add(&row, unit, cell)?;
        }
    }
    Ok(headline.into_table())
}

/// The least and the most of a program.
fn ends(runs: &PairRuns, program: &str, measure: MappingMeasure) -> [Cell; 2] {
    match extremes(runs, program, measure) {
        Some(ends) => ends.map(|case| interval_cell(&case.values)),
        None => [(); 2].map(|()| Cell::missing("no data comes from memory")),
    }
}

fn short(measure: MappingMeasure) -> &'static str {
    measure.key.trim_end_matches("_cycles")
}

fn ranges_row(runs: &PairRuns, program: &str) -> Vec<Cell> {
    let both = |measure: &MappingMeasure| ends(runs, program, *measure);
    let mut cells: Vec<Cell> = SHOWN.iter().flat_map(both).collect();
    cells.push(match extremes(runs, program, LATENCY) {
        Some([_, most]) => Cell::Text(format!("{} under {}", most.co_runner, most.mapping)),
        None => Cell::missing("no data comes from memory"),
    });
    cells
}

fn extremes_figure(
    file: &StudyFile,
    runs: &PairRuns,
    measure: MappingMeasure,
) -> Result<Figure, StudyError> {
    let ends = PROGRAMS.map(|program| extremes(runs, program, measure));
    let series = |(n, name): (usize, &str)| {
        let cell = |ends: &Option<[CharacteristicCase; 2]>| match ends {
            Some(ends) => interval_cell(&ends[n].values),
            None => Cell::missing("no data comes from memory"),
        };
        (name.to_owned(), ends.iter().map(cell).collect())
    };
    let series = ["least", "most"].into_iter().enumerate().map(series);
    let groups = PROGRAMS.map(str::to_owned).to_vec();
    file.bar_figure(short(measure), runs.seeds, groups, series)
}

/// A characteristic: title and unit in the headline, and value.
type HeadlineCharacteristic = (
    &'static str,
    &'static str,
    fn(&AloneCharacteristics) -> Option<f64>,
);

/// The characteristics, in the order of columns.
const ITEMS: [HeadlineCharacteristic; 8] = [
    ("Bandwidth", "MB/s", |c| c.bandwidth_mb_s),
    ("Prefetchers remove", "% of L2 misses", |c| {
        percent(c.prefetch_effectiveness)
    }),
    ("Prefetchers add", "% of lines", |c| {
        percent(c.prefetch_excess)
    }),
    ("Prefetched", "% of transactions", |c| {
        percent(c.prefetch_fraction)
    }),
    ("Misses saved by sharing", "%", |c| percent(c.data_sharing)),
    ("Input and output", "% of time", |c| percent(c.io_share)),
    ("Waits for siblings", "% of time", |c| {
        percent(c.sibling_share)
    }),
    ("Switched in", "1/s", |c| c.switches_per_s),
];

fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

fn alone_rows(runs: &PairRuns) -> impl Iterator<Item = (&'static str, Vec<Cell>)> {
    let cells = |alone: &CharacterisedProgram| {
        let cell = |item: &HeadlineCharacteristic| {
            number_or_missing((item.2)(&alone.characteristics), "it misses nothing")
        };
        ITEMS.iter().map(cell).collect()
    };
    let all = PROGRAMS.into_iter().zip(&runs.alone);
    all.map(move |(program, alone)| (program, cells(alone)))
}

fn sentence(runs: &PairRuns) -> String {
    let of = |program: &&'static str| {
        let [least, most] = extremes(runs, program, LATENCY)?.map(|case| mean(&case.values));
        Some((*program, most? / least?))
    };
    let mut all: Vec<(&str, f64)> = PROGRAMS.iter().filter_map(of).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all: Vec<String> = all
        .iter()
        .map(|(name, by)| format!("{name} {by:.2}"))
        .collect();
    format!("Most by least memory latency: {}.", all.join(", "))
}
