//! Pairs of programs: M2, M3, M5, M8, M9, M10 and M12.
//!
//! Keys. Table `headline`: rows `PROGRAM, MAPPING over os` and `PROGRAM, MAPPING, MEASURE`; M9 puts
//! `A+B, ` before them. Tables `pair` and `transactions`: rows `PROGRAM/MAPPING` and, in M8,
//! `PROGRAM/alone`, the program by itself where `int` has it in the pair. Table `attribution`: rows programs; all columns are summands of the natural
//! logarithm of the ratio of times, in percent: `time` is `cycles` and `utilisation` together,
//! `cycles` are the resources and `other`. M9: table `times`, rows `A+B/PROGRAM/MAPPING`, and a
//! figure for each pair, `A-B`.

use super::measures::{KINDS, LATENCY, MappingMeasure, TIMES, TRANSACTIONS, UTILISATION};
use super::{IN_PLACE, MAPPINGS, PROGRAMS, PairRuns, ProgramNamePair, not_modelled};
use crate::frame::{interval_cell, number_or_missing};
use crate::studies::output::OutputBuilder;
use crate::study::file::{CellSpec, StudyFile};
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::analysis::{Attribution, SharedResource, attribute};
use consort_core::stats::{RatioInterval, mean};
use consort_data::Cell;
use consort_experiment::ExperimentContext;
use consort_experiment::mapping::OS;

/// A program of a pair under a mapping, or alone if there is none.
#[derive(Clone, Copy)]
struct PairRow {
    pair: ProgramNamePair,
    place: usize,
    mapping: Option<&'static str>,
}

/// Rows of a pair: both programs under each of these mappings.
fn pair_rows(
    pair: ProgramNamePair,
    mappings: impl IntoIterator<Item = Option<&'static str>>,
) -> Vec<PairRow> {
    let mappings: Vec<Option<&str>> = mappings.into_iter().collect();
    let rows = (0..pair.len()).flat_map(|place| {
        let row = move |&mapping| PairRow {
            pair,
            place,
            mapping,
        };
        mappings.iter().map(row)
    });
    rows.collect()
}

impl PairRow {
    fn program(&self) -> &'static str {
        self.pair[self.place]
    }

    fn mapping(&self) -> &'static str {
        self.mapping.unwrap_or("alone")
    }

    fn key(&self) -> String {
        format!("{}/{}", self.program(), self.mapping())
    }

    fn cell(&self, runs: &PairRuns, measure: MappingMeasure) -> Cell {
        match self.mapping {
            Some(mapping) => runs.cell(self.pair, self.place, mapping, measure.value),
            None => runs.value_in_place(self.program(), measure.value),
        }
    }

    /// Speed over `os`.
    fn speed(&self, runs: &PairRuns) -> Cell {
        match self.mapping {
            Some(mapping) => runs.speed(self.pair, self.place, mapping),
            None => Cell::missing("the program is alone"),
        }
    }
}

/// Bars of several measures of one unit: a group for each row, a series for each measure.
fn stack_measures(
    output: &mut OutputBuilder<'_>,
    key: &str,
    runs: &PairRuns,
    rows: &[PairRow],
    measures: &[MappingMeasure],
) -> Result<(), StudyError> {
    let series = measures.iter().map(|measure| {
        let cells = rows.iter().map(|row| row.cell(runs, *measure));
        (measure.title, cells.collect())
    });
    output.bars(key, rows.iter().map(PairRow::key), series)
}

/// Speeds of both programs of a pair over `os`, in words, and the two taken together.
fn speeds_note(runs: &PairRuns, pair: ProgramNamePair, mappings: &[&str]) -> String {
    let others = mappings.iter().filter(|mapping| **mapping != OS);
    let texts = others.map(|mapping| {
        let [a, b] = [0, 1].map(|place| runs.speed(pair, place, mapping).text());
        let both = RatioInterval::from_ratios(&runs.gains(pair, mapping));
        let both = both.map_or_else(String::new, |both| Cell::from(both).text());
        let [first, second] = pair;
        format!("{mapping} {first} {a}, {second} {b}, both {both}")
    });
    let texts: Vec<String> = texts.collect();
    format!("Speed over os: {}.", texts.join("; "))
}

/// M2, M3, M5, M10 and M12: one pair of programs under some mappings. The file says which: `each`
/// of its table `pair` is the programs, `policies` the mappings, its columns the measures; rows of
/// the headline are the measures that the source's chart shows in addition to times, and figures
/// have the key of their measure. `policies` of the table `attribution`, if there is one, are the two
/// ends of a change.
pub(in crate::studies) fn pair_of_programs(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = PairRuns::get_or_run(context)?;
    let mut output = OutputBuilder::new(file, runs.seeds)?;
    let table = output.table_spec("pair")?;
    let programs = table.each.iter().map(|words| {
        let program = words.get("program").map_or("", String::as_str);
        find_name(&PROGRAMS, program)
    });
    let pair: ProgramNamePair = { programs.collect::<Result<Vec<_>, _>>()? }
        .try_into()
        .map_err(|_| StudyError::part("pair", "needs two programs in `each`"))?;
    let mappings = table.policies.iter().map(|name| find_name(&MAPPINGS, name));
    let mappings: Vec<&str> = mappings.collect::<Result<_, _>>()?;

    let rows = pair_rows(pair, mappings.iter().map(|mapping| Some(*mapping)));
    for row in rows.iter().filter(|row| row.mapping() != OS) {
        let key = format!("{}, {} over os", row.program(), row.mapping());
        output.headline_gain(&key, row.speed(&runs))?;
    }
    for measure in find_measures(file.headline.iter().flat_map(|block| &block.rows))? {
        for row in &rows {
            let (program, mapping, title) = (row.program(), row.mapping(), measure.title);
            let cell = row.cell(&runs, measure);
            output.headline(format!("{program}, {mapping}, {title}"), measure.unit, cell)?;
        }
    }
    let shown = find_measures(&table.columns)?;
    let cells = rows.iter().map(|row| {
        let mut cells = vec![row.speed(&runs)];
        cells.extend(shown.iter().map(|measure| row.cell(&runs, *measure)));
        (row.key(), cells)
    });
    output.table("pair", cells)?;

    // The chart has all mappings, also those that the table leaves out.
    let others = MAPPINGS.into_iter().filter(|mapping| *mapping != OS);
    let speeds = others.map(|mapping| {
        let cells = [0, 1].map(|place| runs.speed(pair, place, mapping));
        (mapping, cells.to_vec())
    });
    output.bars("speed", pair, speeds)?;
    for figure in &file.figures {
        let Ok(measure) = MappingMeasure::find(&figure.key) else {
            continue;
        };
        let series = mappings.iter().map(|mapping| {
            let cell = |place| runs.cell(pair, place, mapping, measure.value);
            (*mapping, [0, 1].map(cell).to_vec())
        });
        output.bars(&figure.key, pair, series)?;
    }
    if let Ok(table) = output.table_spec("attribution")
        && let [from, to] = &table.policies[..]
    {
        attribute_change(&mut output, &runs, pair, [from, to])?;
    }
    output.note(speeds_note(&runs, pair, &mappings));
    let mut output = runs.finish(output);
    output.notes.extend(file.mechanism.clone());
    Ok(output)
}

/// Measure of the column that every table of a pair begins with.
const SPEED: &str = "speed_over_os";

/// The name of a program or mapping of the sweep.
fn find_name(all: &[&'static str], name: &str) -> Result<&'static str, StudyError> {
    let found = all.iter().copied().find(|known| *known == name);
    found.ok_or_else(|| StudyError::part(name, "is no program or mapping of the sweep"))
}

/// The measures of these columns, without that of speed.
fn find_measures<'a>(
    columns: impl IntoIterator<Item = &'a CellSpec>,
) -> Result<Vec<MappingMeasure>, StudyError> {
    let keys = columns.into_iter().map(|column| column.measure.as_str());
    let keys = keys.filter(|key| *key != SPEED);
    keys.map(MappingMeasure::find).collect()
}

/// Adds table and figure of the change of time from one mapping to another, by resource.
fn attribute_change(
    output: &mut OutputBuilder<'_>,
    runs: &PairRuns,
    pair: ProgramNamePair,
    [from, to]: [&str; 2],
) -> Result<(), StudyError> {
    // Resources whose stall cycles the simulation counts.
    const RESOURCES: [SharedResource; 6] = [
        SharedResource::L1d,
        SharedResource::L1i,
        SharedResource::L2,
        SharedResource::MemoryPath,
        SharedResource::BranchPredictor,
        SharedResource::Tlb,
    ];
    let mut names = vec!["utilisation"];
    names.extend(RESOURCES.map(SharedResource::name));
    names.push("other cycles");
    let (mut rows, mut parts_of) = (Vec::new(), Vec::new());
    for (place, program) in pair.into_iter().enumerate() {
        let both = runs.both(pair, from).iter().zip(runs.both(pair, to));
        // Seed by seed, so that the intervals of the parts are over seeds.
        let found = both
            .filter_map(|(from, to)| attribute(&runs.usage(&from[place]), &runs.usage(&to[place])));
        let found: Vec<Attribution> = found.collect();
        let over_seeds = |value: &dyn Fn(&Attribution) -> f64| {
            interval_cell(&found.iter().map(|a| 100.0 * value(a)).collect::<Vec<_>>())
        };
        let mut parts = vec![over_seeds(&|a| a.utilisation)];
        for resource in RESOURCES {
            let part = |a: &Attribution| a.resources.get(&resource).copied().unwrap_or(0.0);
            parts.push(over_seeds(&part));
        }
        parts.push(over_seeds(&|a| a.other_cycles));
        let mut cells = vec![over_seeds(&|a| a.time), over_seeds(&|a| a.cycles)];
        cells.extend(parts.clone());
        rows.push((program, cells));
        parts_of.push(parts);
    }
    output.table("attribution", rows)?;
    let series = names.into_iter().enumerate().map(|(n, name)| {
        let cells = parts_of.iter().map(|parts: &Vec<Cell>| parts[n].clone());
        (name, cells.collect())
    });
    output.bars("attribution", pair, series)
}

/// M8: canneal with fluidanimate, memory transactions by kind, together and alone.
pub(crate) fn m8(runs: &PairRuns, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    let pair = IN_PLACE;
    let rows = pair_rows(pair, std::iter::once(None).chain(MAPPINGS.map(Some)));
    for row in &rows {
        for kind in KINDS.into_iter().chain([TRANSACTIONS]) {
            let key = format!("{}, {}, {}", row.program(), row.mapping(), kind.title);
            output.headline(key, kind.unit, row.cell(runs, kind))?;
        }
    }
    let cells = rows.iter().map(|row| {
        let shown = KINDS.into_iter().chain([TRANSACTIONS, LATENCY]);
        let cells = shown.map(|measure| row.cell(runs, measure));
        (row.key(), cells.chain([row.speed(runs)]).collect())
    });
    output.table("transactions", cells)?;
    stack_measures(output, "transactions", runs, &rows, &KINDS)?;
    output.note(speeds_note(runs, pair, &MAPPINGS));
    output.note(not_modelled());
    Ok(())
}

/// M9: where the time of threads goes, for four pairs of programs.
pub(crate) fn m9(runs: &PairRuns, output: &mut OutputBuilder<'_>) -> Result<(), StudyError> {
    const PAIRS: [ProgramNamePair; 4] = [
        ["facesim", "streamcluster"],
        ["canneal", "fluidanimate"],
        ["streamcluster", "bodytrack"],
        ["bodytrack", "vips"],
    ];
    let rows = PAIRS.map(|pair| pair_rows(pair, MAPPINGS.map(Some)));
    for measure in std::iter::once(UTILISATION).chain(TIMES) {
        for row in rows.iter().flatten() {
            let (both, title) = (row.pair.join("+"), measure.title);
            let key = format!("{both}, {}, {}, {title}", row.program(), row.mapping());
            output.headline(key, measure.unit, row.cell(runs, measure))?;
        }
    }
    let used = |pair, mapping| {
        let of_program = |place| mean(&runs.values(pair, place, mapping, UTILISATION.value));
        Some(of_program(0)? + of_program(1)?)
    };
    let over_os = PAIRS.iter().filter_map(|pair| {
        let held = MAPPINGS.iter().filter(|mapping| **mapping != OS);
        let best = held
            .filter_map(|mapping| used(*pair, mapping))
            .reduce(f64::max)?;
        Some(100.0 * (best / used(*pair, OS)? - 1.0))
    });
    let most = number_or_missing(over_os.reduce(f64::max), "no pair was run");
    output.headline(
        "utilisation of the best mapping over os, most of the pairs",
        "percent",
        most,
    )?;
    let cells = rows.iter().flatten().map(|row| {
        let shown = TIMES.into_iter().chain([UTILISATION]);
        let cells = shown.map(|measure| row.cell(runs, measure)).collect();
        (format!("{}/{}", row.pair.join("+"), row.key()), cells)
    });
    output.table("times", cells)?;
    for (pair, rows) in PAIRS.into_iter().zip(&rows) {
        stack_measures(output, &pair.join("-"), runs, rows, &TIMES)?;
        let speeds = speeds_note(runs, pair, &MAPPINGS);
        output.note(format!("{}. {speeds}", pair.join(" with ")));
    }
    Ok(())
}
