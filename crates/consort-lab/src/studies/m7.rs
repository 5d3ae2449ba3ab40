//! M7: prefetched lines, memory transactions and memory latency, the least and the most of each
//! program over mappings and co-runners.
//!
//! Keys. Table `headline`: rows `PROGRAM, MEASURE, least` and `most`, and `PROGRAM alone, CHARACTERISTIC`.
//! Table `ranges`: rows programs; columns `prefetched`, `transactions`, `latency`, each with
//! `-min` and `-max` behind it (interval over seeds), and `latency-max-at`. Table `alone`, the
//! source's Table III: rows programs; columns `bandwidth_mb_s`, `effectiveness_percent`,
//! `excess_percent`, `fraction_percent`, `data_sharing_percent`, `io_percent`, `sibling_percent`,
//! `switches_hz`. Figures `prefetched`, `transactions`, `latency`.

use super::mapping::measures::{LATENCY, Measure, PREFETCHED, TRANSACTIONS};
use super::mapping::plan::{MAPPINGS, PROGRAMS, Pair};
use super::mapping::sweep::Runs;
use super::mapping::views::{Draft, bars};
use super::mapping::{notes, sweep};
use super::symbiosis::cells::known;
use crate::frame::interval;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::Characteristics;
use consort_core::stats::mean;
use consort_experiment::Context;
use consort_report::{Cell, Column, Figure, Headline, Table};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    let figure = |measure: &Measure| extremes_figure(&runs, *measure);
    let mut told = vec![sentence(&runs)];
    told.extend(notes::stopped(&runs));
    Ok(StudyOutput {
        tables: vec![headline(&runs)?, ranges_table(&runs)?, alone_table(&runs)?],
        figures: SHOWN.iter().map(figure).collect::<Result<_, _>>()?,
        notes: told,
        runs: runs.seeds,
    })
}

const SHOWN: [Measure; 3] = [PREFETCHED, TRANSACTIONS, LATENCY];

/// A co-runner and a mapping of a program, and its values by seed.
struct Case {
    co_runner: &'static str,
    mapping: &'static str,
    values: Vec<f64>,
}

/// Cases with the smallest and the largest mean; none for a program without any.
fn extremes(runs: &Runs, program: &str, measure: Measure) -> Option<[Case; 2]> {
    let of = |(pair, place): (Pair, usize), mapping: &'static str| Case {
        co_runner: pair[1 - place],
        mapping,
        values: runs.values(pair, place, mapping, measure.value),
    };
    let all = || {
        let cases = runs.with(program);
        let cases = cases.flat_map(|case| MAPPINGS.map(|mapping| of(case, mapping)));
        cases.filter(|case| case.values.iter().all(|value| value.is_finite()))
    };
    let size = |case: &Case| mean(&case.values).unwrap_or(0.0);
    let least = all().min_by(|a, b| size(a).total_cmp(&size(b)))?;
    let most = all().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    Some([least, most])
}

fn headline(runs: &Runs) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
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
        for (_, title, unit, value) in ITEMS {
            let row = format!("{program} alone, {title}");
            let cell = known(value(&alone.characteristics), "it misses nothing");
            headline.add(&row, unit, cell)?;
        }
    }
    Ok(headline.into_table())
}

/// The least and the most of a program.
fn ends(runs: &Runs, program: &str, measure: Measure) -> [Cell; 2] {
    match extremes(runs, program, measure) {
        Some(ends) => ends.map(|case| interval(&case.values)),
        None => [(); 2].map(|()| Cell::missing("no data comes from memory")),
    }
}

fn ranges_table(runs: &Runs) -> Result<Table, StudyError> {
    let mut columns = Vec::new();
    for measure in SHOWN {
        for (end, title) in [("min", "least"), ("max", "most")] {
            columns.push(Column {
                key: format!("{}-{end}", short(measure)),
                title: format!("{}, {title}", measure.title),
                ..measure.column()
            });
        }
    }
    columns.push(Column::plain("latency-max-at", "Most latency with"));
    let title = "Least and most over co-runners and mappings";
    let mut table = Table::new("ranges", title, columns)?;
    for program in PROGRAMS {
        table.push(program, ranges_row(runs, program))?;
    }
    Ok(table)
}

fn short(measure: Measure) -> &'static str {
    measure.key.trim_end_matches("_cycles")
}

fn ranges_row(runs: &Runs, program: &str) -> Vec<Cell> {
    let both = |measure: &Measure| ends(runs, program, *measure);
    let mut cells: Vec<Cell> = SHOWN.iter().flat_map(both).collect();
    cells.push(match extremes(runs, program, LATENCY) {
        Some([_, most]) => Cell::Text(format!("{} under {}", most.co_runner, most.mapping)),
        None => Cell::missing("no data comes from memory"),
    });
    cells
}

fn extremes_figure(runs: &Runs, measure: Measure) -> Result<Figure, StudyError> {
    let ends = PROGRAMS.map(|program| extremes(runs, program, measure));
    let series = |(n, name): (usize, &str)| {
        let cell = |ends: &Option<[Case; 2]>| match ends {
            Some(ends) => interval(&ends[n].values),
            None => Cell::missing("no data comes from memory"),
        };
        (name.to_owned(), ends.iter().map(cell).collect())
    };
    let series: Vec<(String, Vec<Cell>)> = ["least", "most"]
        .into_iter()
        .enumerate()
        .map(series)
        .collect();
    let title = format!("{}: least and most of each program", measure.title);
    let draft = Draft {
        key: short(measure),
        title: &title,
        text: "Over all co-runners and mappings.",
        category: "Program",
    };
    let groups = PROGRAMS.map(str::to_owned).to_vec();
    bars(draft, runs.seeds, (measure.axis(), 0.0), groups, &series)
}

/// A characteristic: key, title, unit and value.
type Item = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Characteristics) -> Option<f64>,
);

const ITEMS: [Item; 8] = [
    ("bandwidth_mb_s", "Bandwidth", "MB/s", |c| c.bandwidth_mb_s),
    (
        "effectiveness_percent",
        "Prefetchers remove",
        "% of L2 misses",
        |c| percent(c.prefetch_effectiveness),
    ),
    ("excess_percent", "Prefetchers add", "% of lines", |c| {
        percent(c.prefetch_excess)
    }),
    ("fraction_percent", "Prefetched", "% of transactions", |c| {
        percent(c.prefetch_fraction)
    }),
    (
        "data_sharing_percent",
        "Misses saved by sharing",
        "%",
        |c| percent(c.data_sharing),
    ),
    ("io_percent", "Input and output", "% of time", |c| {
        percent(c.io_share)
    }),
    ("sibling_percent", "Waits for siblings", "% of time", |c| {
        percent(c.sibling_share)
    }),
    ("switches_hz", "Switched in", "1/s", |c| c.switches_per_s),
];

fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

fn alone_table(runs: &Runs) -> Result<Table, StudyError> {
    let columns = ITEMS
        .iter()
        .map(|item| Column::with_unit(item.0, item.1, item.2));
    let title = "The programs alone, with and without prefetchers: one run each";
    let mut table = Table::new("alone", title, columns.collect())?;
    for (program, alone) in PROGRAMS.iter().zip(&runs.alone) {
        let cell = |item: &Item| known((item.3)(&alone.characteristics), "it misses nothing");
        table.push(program, ITEMS.iter().map(cell).collect())?;
    }
    Ok(table)
}

fn sentence(runs: &Runs) -> String {
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
