//! Resources that move performance: M6, the key resources, and M13, the most important ones of each
//! program with each co-runner.
//!
//! Keys. M6: table `key-resources`: rows resources; `varies_percent` and `moves_percent` are over
//! seeds, where they are largest; `seeds` counts the seeds that give the same answer by themselves.
//! M13: tables `importance` and `inside-cycles`: rows programs, columns co-runners, text. Table
//! `shares`: rows `PROGRAM/CO_RUNNER`; resources and `other` are parts of the logarithm of the ratio
//! of times. Table `counts`: rows resources, `none` and `os-best`.

use super::{PROGRAMS, PairRuns, not_modelled};
use crate::frame::interval_cell;
use crate::mapping::variation_cell;
use crate::studies::output::{OutputBuilder, join};
use crate::study::StudyError;
use consort_core::mapping::analysis::{
    Importance, KeyResource, ResourceFinding, SharedResource, Thresholds, importance, key_resources,
};
use consort_data::{Cell, ReportColumn, ReportTable};
use consort_experiment::mapping::OS;
use std::collections::BTreeSet;

/// Variation of the use of a resource, and the change of performance by it, if the approach has
/// both.
fn ranges(found: &KeyResource) -> Option<(f64, Option<f64>)> {
    match &found.finding {
        ResourceFinding::Direct { varies, moves, .. } => Some((*varies, Some(*moves))),
        ResourceFinding::Indirect { varies, .. } => Some((*varies, None)),
        ResourceFinding::NotCounted => None,
    }
}

/// M6.
pub(crate) fn m6(runs: &PairRuns, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    let thresholds = Thresholds::default();
    let all = key_resources(&runs.table(), &thresholds);
    let by_seed = runs.by_seed();
    let by_seed = by_seed
        .iter()
        .map(|table| key_resources(table, &thresholds));
    let by_seed: Vec<Vec<KeyResource>> = by_seed.collect();
    // Values of one resource in each seed, percent.
    let values = |n: usize, value: fn(&KeyResource) -> Option<f64>| -> Vec<f64> {
        let values = by_seed.iter().filter_map(|seed| value(seed.get(n)?));
        values.map(|value| 100.0 * value).collect()
    };
    let moves = |n: usize| {
        let values = values(n, |found| ranges(found)?.1);
        match values.is_empty() {
            true => Cell::missing("no counter of its stall cycles"),
            false => interval_cell(&values),
        }
    };
    let no_mechanism = || Cell::missing("the simulation has no mechanism for it");

    let keys = all.iter().filter(|found| found.key == Some(true));
    let keys = join(keys, |found| found.resource.name().replace('-', " "));
    output.headline("key resources", "resources", keys.as_str())?;
    for found in &all {
        let cell = match found.key {
            Some(key) => Cell::Number(f64::from(u8::from(key))),
            None => no_mechanism(),
        };
        let row = format!("{} is a key resource", found.resource);
        output.headline(row, "1 is yes", cell)?;
    }
    for (n, found) in all.iter().enumerate() {
        let row = format!("{}, moves performance", found.resource);
        output.headline(row, "percent", moves(n))?;
    }
    let rows = all.iter().enumerate().map(|(n, found)| {
        let Some(key) = found.key else {
            return (found.resource.name(), vec![no_mechanism(); 6]);
        };
        let (approach, place) = match &found.finding {
            ResourceFinding::Direct { pair, .. } => ("direct", format!("{} / {}", pair.0, pair.1)),
            ResourceFinding::Indirect {
                improved, alone, ..
            } => {
                let place = format!("improved alone in {alone} of {improved} pairs of mappings");
                ("indirect", place)
            }
            ResourceFinding::NotCounted => ("none", String::new()),
        };
        let same = |seed: &&Vec<KeyResource>| seed.get(n).is_some_and(|k| k.key == found.key);
        let varies = values(n, |found| Some(ranges(found)?.0));
        let cells = vec![
            (if key { "yes" } else { "no" }).into(),
            approach.into(),
            variation_cell(&varies, interval_cell),
            moves(n),
            Cell::Text(place),
            Cell::Count(by_seed.iter().filter(same).count() as u64),
        ];
        (found.resource.name(), cells)
    });
    output.table("key-resources", rows)?;
    let counted = all
        .iter()
        .enumerate()
        .map(|(n, found)| (found.resource.name(), moves(n)));
    let (names, cells): (Vec<&str>, Vec<Cell>) =
        counted.filter(|(_, moves)| moves.value().is_some()).unzip();
    output.bars("moves", names, [("direct", cells)])?;
    let names = |key: Option<bool>| {
        let names = all.iter().filter(|found| found.key == key);
        let names: Vec<&str> = names.map(|found| found.resource.name()).collect();
        match names.is_empty() {
            true => "none".to_owned(),
            false => names.join(", "),
        }
    };
    output.note(format!(
        "Key resources: {}; not: {}; not counted: {}. Thresholds of 5 % each, as the source gives \
         none.",
        names(Some(true)),
        names(Some(false)),
        names(None),
    ));
    output.note(not_modelled());
    Ok(())
}

/// Text of a cell in which os is the fastest.
const OS_BEST: &str = "os-best";
/// Text of a cell in which no resource by itself makes os slower by the threshold.
const NONE: &str = "none";
/// Part of the logarithm of the ratio of times from which on a resource inside the cycles counts.
const INSIDE: f64 = 0.01;

/// Text of a cell: the resources, the largest part first.
fn important_resources(found: &Importance) -> String {
    if found.best == OS {
        return OS_BEST.to_owned();
    }
    match found.resources.is_empty() {
        true => NONE.to_owned(),
        false => found.resources.join("+"),
    }
}

/// Name of the resource with the largest part, the cores left out.
fn largest_inside_cycles(found: &Importance) -> String {
    let parts = { found.parts.iter() }.filter(|(r, _)| **r != SharedResource::Cores);
    let most = parts.max_by(|a, b| a.1.total_cmp(b.1));
    let most = most.filter(|(_, part)| **part >= INSIDE);
    most.map_or(NONE, |(resource, _)| resource.name())
        .to_owned()
}

/// M13.
pub(crate) fn m13(runs: &PairRuns, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    let thresholds = Thresholds::default();
    let all = importance(&runs.table(), OS, &thresholds);
    let by_seed = runs.by_seed();
    let by_seed = by_seed
        .iter()
        .map(|table| importance(table, OS, &thresholds));
    let by_seed: Vec<_> = by_seed.collect();
    let find =
        |program: &str, co_runner: &str| all.get(&(program.to_owned(), co_runner.to_owned()));
    let parts = all.values().flat_map(|found| found.parts.keys().copied());
    let resources: BTreeSet<SharedResource> = parts.collect();
    // Programs and co-runners that name each resource, none, or have os as their best mapping.
    let mut names: Vec<&str> = Vec::new();
    for resource in &resources {
        // Several resources may have one name in the source's table.
        if !names.contains(&resource.table_name()) {
            names.push(resource.table_name());
        }
    }
    names.extend([NONE, OS_BEST]);
    let texts: Vec<String> = all.values().map(important_resources).collect();
    let counts: Vec<(&str, usize)> = { names.into_iter() }
        .map(|name| {
            let has = |text: &&String| text.split('+').any(|part| part == name);
            (name, texts.iter().filter(has).count())
        })
        .collect();
    // Number of seeds that give the same by themselves.
    let same_seeds = |pair, text: &String| {
        let found = by_seed.iter().filter_map(|seed| seed.get(pair));
        found
            .filter(|found| important_resources(found) == *text)
            .count()
    };

    for (name, count) in &counts {
        let row = format!("{name}, programs and co-runners");
        output.headline(row, "cells", *count as u64)?;
    }
    for ((program, co_runner), text) in all.keys().zip(&texts) {
        let row = format!("{program} beside {co_runner}");
        output.headline(row, "resources", text.as_str())?;
    }
    let important = important_resources as fn(&Importance) -> String;
    for (key, text) in [
        ("importance", important),
        ("inside-cycles", largest_inside_cycles),
    ] {
        let rows = PROGRAMS.map(|program| {
            let cells = PROGRAMS.map(|co_runner| match find(program, co_runner) {
                Some(found) => Cell::Text(text(found)),
                None => Cell::missing("was not run"),
            });
            (program, cells.to_vec())
        });
        output.table(key, rows)?;
    }

    let mut columns = vec![
        ReportColumn::plain("best", "Fastest under"),
        ReportColumn::with_unit("slower_percent", "os slower by", "%"),
    ];
    for name in resources.iter().map(|resource| resource.name()) {
        columns.push(ReportColumn::with_unit(name, name, "log %"));
    }
    columns.push(ReportColumn::with_unit("other", "Other cycles", "log %"));
    columns.push(ReportColumn::plain("seeds", "Seeds that agree"));
    let title = "From the fastest mapping to os, by resource";
    let mut shares = ReportTable::new("shares", title, columns)?;
    for ((pair, found), text) in all.iter().zip(&texts) {
        let mut cells = vec![
            found.best.as_str().into(),
            (100.0 * (found.slower - 1.0)).into(),
        ];
        for resource in &resources {
            let part = found.parts.get(resource);
            cells.push(part.map_or(0.0, |part| 100.0 * part).into());
        }
        cells.push((100.0 * found.unexplained_part()).into());
        cells.push(Cell::Count(same_seeds(pair, text) as u64));
        shares.push(&format!("{}/{}", pair.0, pair.1), cells)?;
    }
    output.push_table(shares);
    let rows = { counts.iter() }.map(|(name, count)| (*name, vec![Cell::Count(*count as u64)]));
    output.table("counts", rows)?;
    let rows = PROGRAMS.map(|program| {
        let slower = PROGRAMS
            .map(|co_runner| find(program, co_runner).map(|found| 100.0 * (found.slower - 1.0)));
        (program, slower.to_vec())
    });
    output.heat_map("slower", PROGRAMS, rows)?;

    let steady = all.keys().zip(&texts);
    let steady = steady.filter(|(pair, text)| same_seeds(*pair, text) == by_seed.len());
    let named = counts.iter().filter(|(_, count)| *count > 0);
    output.note(format!(
        "Of {} programs and co-runners cells name: {}. In {} every seed by itself gives the same.",
        all.len(),
        join(named, |(name, count)| format!("{name} {count}")),
        steady.count(),
    ));
    Ok(())
}
