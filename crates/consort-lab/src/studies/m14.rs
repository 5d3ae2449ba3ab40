//! M14: the best mapping of every pair and its gain over `os`; by memory resources alone and by
//! all.
//!
//! Keys. Table `headline`: rows `WHO over os, WHICH pairs` and `A+B, best mapping over os`. Table `pairs`: rows `A+B`; columns `iso`, `int`, `spr` (gain over os, percent), `best`,
//! `best_gain`, `memory`, `memory_gain`, `all`, `all_gain` (mapping chosen on most seeds, and the gain
//! of what was chosen on the other seeds), `seeds` (those that choose the same best). Table
//! `summary`: rows `all` and `intensive`; columns `pairs`, `iso`, `int`, `spr`, `best`, `memory`,
//! `cycles`, `all` (gain, percent, interval over pairs), `memory_matches`. Table `programs`: rows
//! programs; columns `bandwidth_mb_s`, `switches_hz`, `intensive`. Figures `gains`, `choosers`.

use super::mapping::choice::{ALL, BEST, CYCLES, Chooser, MEMORY};
use super::mapping::gains::{gain_cell, mean_gain};
use super::mapping::plan::{MAPPINGS, PROGRAMS, Pair};
use super::mapping::subset::{BANDWIDTH_MB_S, SWITCHES_PER_S};
use super::mapping::sweep::Runs;
use super::mapping::views::{Draft, bars};
use super::mapping::{notes, sweep};
use super::symbiosis::cells::known;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::Context;
use consort_report::{Axis, Cell, Column, Figure, Headline, Table};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    let mut told = notes_of(&runs);
    told.extend(notes::stopped(&runs));
    Ok(StudyOutput {
        tables: vec![
            headline(&runs)?,
            summary(&runs)?,
            pairs_table(&runs)?,
            programs_table(&runs)?,
        ],
        figures: vec![gains_figure(&runs)?, choosers_figure(&runs)?],
        notes: told,
        runs: runs.seeds,
    })
}

/// The mappings that are held.
fn held() -> impl Iterator<Item = &'static str> + Clone {
    MAPPINGS.into_iter().skip(1)
}

/// Choosers whose choices the table of pairs shows.
const SHOWN: [Chooser; 3] = [BEST, MEMORY, ALL];
/// All choosers.
const CHOOSERS: [Chooser; 4] = [BEST, MEMORY, CYCLES, ALL];

fn pairs_table(runs: &Runs) -> Result<Table, StudyError> {
    let gain = |key: &str, title: &str| Column::with_unit(key, title, "% gain over os");
    let mut columns: Vec<Column> = held().map(|m| gain(m, m)).collect();
    for by in SHOWN {
        columns.push(Column::plain(by.key, by.title));
        columns.push(gain(&format!("{}_gain", by.key), by.title));
    }
    columns.push(Column::plain("seeds", "Seeds that choose the best"));
    let title = "Gain of each pair over os: geometric mean of its programs' speeds";
    let mut table = Table::new("pairs", title, columns)?;
    for pair in &runs.pairs {
        let mut cells: Vec<Cell> = held().map(|m| gain_cell(&runs.gains(*pair, m))).collect();
        for by in SHOWN {
            cells.push(runs.mostly(*pair, by).0.into());
            cells.push(gain_cell(&runs.chosen_gains(*pair, by)));
        }
        cells.push(Cell::Count(runs.mostly(*pair, BEST).1 as u64));
        table.push(&pair.join("+"), cells)?;
    }
    Ok(table)
}

/// Key and pairs of the rows of the summary.
fn groups(runs: &Runs) -> [(&'static str, Vec<Pair>); 2] {
    [
        ("all", runs.pairs.clone()),
        ("intensive", runs.intensive_pairs()),
    ]
}

/// Choosers in the source's words.
const WHO: [(&str, Chooser); 3] = [
    ("best mapping", BEST),
    ("memory resources alone", MEMORY),
    ("all resources", ALL),
];

fn headline(runs: &Runs) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (group, pairs) in groups(runs) {
        for (who, by) in WHO {
            let row = format!("{who} over os, {group} pairs");
            let cell = mean_gain(&pairs, |pair| runs.chosen_gains(pair, by));
            headline.add(&row, "percent", cell)?;
        }
        for mapping in held() {
            let row = format!("{mapping} over os, {group} pairs");
            let cell = mean_gain(&pairs, |pair| runs.gains(pair, mapping));
            headline.add(&row, "percent", cell)?;
        }
    }
    for pair in &runs.pairs {
        let row = format!("{}, best mapping over os", pair.join("+"));
        headline.add(&row, "percent", gain_cell(&runs.chosen_gains(*pair, BEST)))?;
    }
    Ok(headline.into_table())
}

fn summary(runs: &Runs) -> Result<Table, StudyError> {
    let gain = |key: &str, title: &str| Column::with_unit(key, title, "% gain over os");
    let mut columns = vec![Column::plain("pairs", "Pairs")];
    columns.extend(held().map(|m| gain(m, m)));
    columns.extend(CHOOSERS.map(|by| gain(by.key, by.title)));
    columns.push(Column::plain(
        "memory_matches",
        "Pairs in which memory alone chooses the best",
    ));
    let title = "Geometric mean gain over os, intervals over pairs";
    let mut table = Table::new("summary", title, columns)?;
    for (key, pairs) in groups(runs) {
        let mut cells = vec![Cell::Count(pairs.len() as u64)];
        cells.extend(held().map(|m| mean_gain(&pairs, |pair| runs.gains(pair, m))));
        cells.extend(CHOOSERS.map(|by| mean_gain(&pairs, |pair| runs.chosen_gains(pair, by))));
        let same = |pair: &&Pair| runs.mostly(**pair, MEMORY).0 == runs.mostly(**pair, BEST).0;
        cells.push(Cell::Count(pairs.iter().filter(same).count() as u64));
        table.push(key, cells)?;
    }
    Ok(table)
}

fn programs_table(runs: &Runs) -> Result<Table, StudyError> {
    let columns = vec![
        Column::with_unit("bandwidth_mb_s", "Bandwidth alone", "MB/s"),
        Column::with_unit("switches_hz", "Switched in alone", "1/s"),
        Column::plain("intensive", "Intensive in"),
    ];
    let title = "What makes a program memory- or synchronisation-intensive";
    let mut table = Table::new("programs", title, columns)?;
    for (program, alone) in PROGRAMS.iter().zip(&runs.alone) {
        let of = &alone.characteristics;
        let cells = vec![
            known(of.bandwidth_mb_s, "not measured"),
            known(of.switches_per_s, "not measured"),
            runs.intensive(program).name().into(),
        ];
        table.push(program, cells)?;
    }
    Ok(table)
}

fn gains_figure(runs: &Runs) -> Result<Figure, StudyError> {
    let series = |mapping: &'static str| {
        let cell = |pair: &Pair| gain_cell(&runs.gains(*pair, mapping));
        (mapping.to_owned(), runs.pairs.iter().map(cell).collect())
    };
    let series: Vec<(String, Vec<Cell>)> = held().map(series).collect();
    let draft = Draft {
        key: "gains",
        title: "Gain of each pair over os under each mapping",
        text: "Geometric mean of its programs' speeds; below 0 is slower than os.",
        category: "Pair",
    };
    let names = runs.pairs.iter().map(|pair| pair.join("+")).collect();
    let axis = Axis::linear("Gain over os", Some("%"));
    bars(draft, runs.seeds, (axis, 0.0), names, &series)
}

fn choosers_figure(runs: &Runs) -> Result<Figure, StudyError> {
    let groups: Vec<(&str, Vec<Pair>)> = { groups(runs).into_iter() }
        .filter(|(_, pairs)| !pairs.is_empty())
        .collect();
    let series = |by: Chooser| {
        let cell =
            |(_, pairs): &(&str, Vec<Pair>)| mean_gain(pairs, |pair| runs.chosen_gains(pair, by));
        (
            by.title.to_owned(),
            groups.iter().map(cell).collect::<Vec<Cell>>(),
        )
    };
    let draft = Draft {
        key: "choosers",
        title: "Gain over os of what is chosen by which resources",
        text: "Geometric means; intervals are over pairs.",
        category: "Pairs",
    };
    let names = groups.iter().map(|(key, _)| (*key).to_owned()).collect();
    let axis = Axis::linear("Gain over os", Some("%"));
    bars(draft, runs.seeds, (axis, 0.0), names, &CHOOSERS.map(series))
}

fn notes_of(runs: &Runs) -> Vec<String> {
    let best = |mapping: &str| {
        let is = |pair: &&Pair| runs.mostly(**pair, BEST).0 == mapping;
        runs.pairs.iter().filter(is).count()
    };
    let counts: Vec<String> = MAPPINGS
        .iter()
        .map(|m| format!("{m} {}", best(m)))
        .collect();
    let chosen = |by: Chooser| {
        let text = |(key, pairs): (&str, Vec<Pair>)| {
            format!(
                "{key} {} %",
                mean_gain(&pairs, |pair| runs.chosen_gains(pair, by)).text()
            )
        };
        let both: Vec<String> = groups(runs).into_iter().map(text).collect();
        format!("{}: {}", by.title, both.join(", "))
    };
    let choosers: Vec<String> = CHOOSERS.into_iter().map(chosen).collect();
    vec![
        format!(
            "Best mapping of {} pairs: {}.",
            runs.pairs.len(),
            counts.join(", ")
        ),
        format!("Gain over os. {}.", choosers.join("; ")),
        format!(
            "Intensive are pairs of which both programs have at least {BANDWIDTH_MB_S} MB/s alone, or \
             have their threads switched in at least {SWITCHES_PER_S} times per second alone: {}.",
            runs.intensities(),
        ),
    ]
}
