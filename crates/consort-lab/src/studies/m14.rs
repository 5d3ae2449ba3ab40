//! M14: the best mapping of every pair and its gain over `os`; by memory resources alone and by
//! all.
//!
//! Keys. Table `headline`: rows `WHO over os, WHICH pairs` and `A+B, best mapping over os`. Table `pairs`: rows `A+B`; columns `iso`, `int`, `spr` (gain over os, percent), `best`,
//! `best_gain`, `memory`, `memory_gain`, `all`, `all_gain` (mapping chosen on most seeds, and the gain
//! of what was chosen on the other seeds), `seeds` (those that choose the same best). Table
//! `summary`: rows `all` and `intensive`; columns `pairs`, `iso`, `int`, `spr`, `best`, `memory`,
//! `cycles`, `all` (gain, percent, interval over pairs), `memory_matches`. Table `programs`: rows
//! programs; columns `bandwidth_mb_s`, `switches_hz`, `intensive`. Figures `gains`, `choosers`.

use super::mapping::choice::{ALL, BEST, CYCLES, MEMORY, MappingChooser};
use super::mapping::plan::{MAPPINGS, PROGRAMS, ProgramNamePair};
use super::mapping::subset::{BANDWIDTH_MB_S, SWITCHES_PER_S};
use super::mapping::sweep::{self, PairRuns};
use super::mapping::views::{gain_cell, mean_gain};
use crate::frame::number_or_missing;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;
use consort_experiment::mapping::CharacterisedProgram;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    Ok(runs.output(
        vec![
            headline(&runs)?,
            summary(file, &runs)?,
            pairs_table(file, &runs)?,
            programs_table(file, &runs)?,
        ],
        vec![gains_figure(file, &runs)?, choosers_figure(file, &runs)?],
        notes_of(&runs),
    ))
}

/// The mappings that are held.
fn held() -> impl Iterator<Item = &'static str> + Clone {
    MAPPINGS.into_iter().skip(1)
}

/// Choosers whose choices the table of pairs shows.
const SHOWN: [MappingChooser; 3] = [BEST, MEMORY, ALL];
/// All choosers.
const CHOOSERS: [MappingChooser; 4] = [BEST, MEMORY, CYCLES, ALL];

fn pairs_table(file: &StudyFile, runs: &PairRuns) -> Result<ReportTable, StudyError> {
    let row = |pair: &ProgramNamePair| {
        let mut cells: Vec<Cell> = held().map(|m| gain_cell(&runs.gains(*pair, m))).collect();
        for by in SHOWN {
            cells.push(runs.mostly(*pair, by).0.into());
            cells.push(gain_cell(&runs.chosen_gains(*pair, by)));
        }
        cells.push(Cell::Count(runs.mostly(*pair, BEST).1 as u64));
        (pair.join("+"), cells)
    };
    file.fill_table("pairs", runs.pairs.iter().map(row))
}

/// Key and pairs of the rows of the summary.
fn groups(runs: &PairRuns) -> [(&'static str, Vec<ProgramNamePair>); 2] {
    [
        ("all", runs.pairs.clone()),
        ("intensive", runs.intensive_pairs()),
    ]
}

/// Choosers in the source's words.
const WHO: [(&str, MappingChooser); 3] = [
    ("best mapping", BEST),
    ("memory resources alone", MEMORY),
    ("all resources", ALL),
];

fn headline(runs: &PairRuns) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
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

fn summary(file: &StudyFile, runs: &PairRuns) -> Result<ReportTable, StudyError> {
    let rows = groups(runs).map(|(key, pairs)| {
        let mut cells = vec![Cell::Count(pairs.len() as u64)];
        cells.extend(held().map(|m| mean_gain(&pairs, |pair| runs.gains(pair, m))));
        cells.extend(CHOOSERS.map(|by| mean_gain(&pairs, |pair| runs.chosen_gains(pair, by))));
        let same =
            |pair: &&ProgramNamePair| runs.mostly(**pair, MEMORY).0 == runs.mostly(**pair, BEST).0;
        cells.push(Cell::Count(pairs.iter().filter(same).count() as u64));
        (key, cells)
    });
    file.fill_table("summary", rows)
}

fn programs_table(file: &StudyFile, runs: &PairRuns) -> Result<ReportTable, StudyError> {
    let row = |(program, alone): (&'static str, &CharacterisedProgram)| {
        let of = &alone.characteristics;
        let cells = vec![
            number_or_missing(of.bandwidth_mb_s, "not measured"),
            number_or_missing(of.switches_per_s, "not measured"),
            runs.intensive(program).name().into(),
        ];
        (program, cells)
    };
    file.fill_table("programs", PROGRAMS.into_iter().zip(&runs.alone).map(row))
}

fn gains_figure(file: &StudyFile, runs: &PairRuns) -> Result<Figure, StudyError> {
    let series = |mapping: &'static str| {
        let cell = |pair: &ProgramNamePair| gain_cell(&runs.gains(*pair, mapping));
        (mapping.to_owned(), runs.pairs.iter().map(cell).collect())
    };
    let names = runs.pairs.iter().map(|pair| pair.join("+")).collect();
    file.bar_figure("gains", runs.seeds, names, held().map(series))
}

fn choosers_figure(file: &StudyFile, runs: &PairRuns) -> Result<Figure, StudyError> {
    let groups = groups(runs).into_iter();
    let some = groups.filter(|(_, pairs)| !pairs.is_empty());
    let (names, groups): (Vec<&str>, Vec<Vec<ProgramNamePair>>) = some.unzip();
    let series = |by: MappingChooser| {
        let cell =
            |pairs: &Vec<ProgramNamePair>| mean_gain(pairs, |pair| runs.chosen_gains(pair, by));
        (by.title.to_owned(), groups.iter().map(cell).collect())
    };
    let names = names.into_iter().map(str::to_owned).collect();
    file.bar_figure("choosers", runs.seeds, names, CHOOSERS.map(series))
}

fn notes_of(runs: &PairRuns) -> Vec<String> {
    let best = |mapping: &str| {
        let is = |pair: &&ProgramNamePair| runs.mostly(**pair, BEST).0 == mapping;
        runs.pairs.iter().filter(is).count()
    };
    let counts: Vec<String> = MAPPINGS
        .iter()
        .map(|m| format!("{m} {}", best(m)))
        .collect();
    let chosen = |by: MappingChooser| {
        let text = |(key, pairs): (&str, Vec<ProgramNamePair>)| {
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
