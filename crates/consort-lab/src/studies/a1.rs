//! A1: how much faster programs are on a large core than on a small one, and why.
//!
//! Keys. Table `headline`; table `programs`: rows `PROGRAM` from the highest ratio to the lowest, and `all`; columns
//! `ratio` (of instructions per cycle), `large_ipc`, `small_ipc`. Table `stacks`: rows
//! `PROGRAM/large`, `PROGRAM/small`; columns `cpi` and `cpi_CAUSE`. Figures `ratio`, `large-stack`,
//! `small-stack`.

use super::asymmetry::chips::{Kind, chip, single};
use super::asymmetry::programs::{SPEC, suite};
use super::asymmetry::single::{Single, pass_instr};
use super::asymmetry::views::{Drawing, bars};
use super::asymmetry::{SEED, SOURCE};
use super::symbiosis::cells::{interval, ratio, ratios};
use crate::context::Context;
use crate::report::{Axis, Cell, Column, Figure, Headline, HeatMap, Plot, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use consort_core::stats::geometric_mean;
use consort_sim::chip::Chip;
use consort_sim::contention::Stack;
use consort_sim::program::ProgramSpec;
use std::sync::Arc;

/// The study.
pub(super) struct A1;

static INFO: StudyInfo = StudyInfo {
    id: "A1",
    title: "Large over small core for each program, and where cycles go",
    source: SOURCE,
    section: "motivation: performance of SPEC CPU2006 on both kinds of core",
    original: "Each program of SPEC CPU2006 alone on the large and on the small core: instructions \
               per cycle, their ratio, and cycles per instruction by cause.",
    differs: "Machine and programs are simulated; a run is one whole pass through the phases of a \
              program's profile. Cycles are told by the simulation's causes. The quick scale has 8 \
              programs, the first 50·10⁹ instructions, and 2 runs.",
    default_seed: SEED,
    full_seconds_hint: 15,
};

const MACHINE: &str = "acmp-1+3";
/// Programs, at the quick and the full scale.
const PROGRAMS: [usize; 2] = [8, usize::MAX];
/// At most so many instructions of a program.
const MOST_INSTR: [f64; 2] = [50e9, f64::INFINITY];
/// Runs on each core.
const RUNS: [usize; 2] = [2, 5];
/// Causes that are no part of a thread's cycles here: no core is shared, nobody waits for locks.
const NOT_ALONE: [&str; 3] = ["window", "dispatch", "lock"];

/// One program's runs on either core.
struct Row {
    name: String,
    large: Vec<Single>,
    small: Vec<Single>,
}

impl Row {
    fn side(&self, kind: Kind) -> &[Single] {
        match kind {
            Kind::Large => &self.large,
            Kind::Small => &self.small,
        }
    }

    fn ipcs(&self, kind: Kind) -> Vec<f64> {
        self.side(kind).iter().map(Single::ipc).collect()
    }

    fn ratio(&self) -> Cell {
        ratio(&self.ipcs(Kind::Large), &self.ipcs(Kind::Small))
    }

    /// Mean cycles per instruction by a cause.
    fn cpi(&self, kind: Kind, cause: usize) -> Cell {
        let of = |run: &Single| run.counters.stack()[cause];
        interval(&self.side(kind).iter().map(of).collect::<Vec<_>>())
    }
}

impl Study for A1 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let rows = rows(context)?;
        Ok(StudyOutput {
            tables: vec![headline(&rows)?, ratios_table(&rows)?, stacks_table(&rows)?],
            figures: vec![
                ratio_figure(&rows)?,
                stack_figure(&rows, Kind::Large)?,
                stack_figure(&rows, Kind::Small)?,
            ],
            notes: notes(&rows),
            runs: context.by_scale(RUNS[0], RUNS[1]),
        })
    }
}

/// All programs, the one with the highest ratio first.
fn rows(context: &Context<'_>) -> Result<Vec<Row>, StudyError> {
    let whole = chip(MACHINE)?;
    let cores = [single(&whole, Kind::Large)?, single(&whole, Kind::Small)?];
    let programs = suite(SPEC, context.by_scale(PROGRAMS[0], PROGRAMS[1]))?;
    let most = context.by_scale(MOST_INSTR[0], MOST_INSTR[1]);
    let runs = context.by_scale(RUNS[0], RUNS[1]) as u64;
    let mut jobs: Vec<(&Arc<Chip>, &Arc<ProgramSpec>, u64)> = Vec::new();
    for program in &programs {
        for core in &cores {
            let seeds = (0..runs).map(|run| context.seed().wrapping_add(run));
            jobs.extend(seeds.map(|seed| (core, program, seed)));
        }
    }
    let told = context.map(&jobs, |(core, program, seed)| {
        Single::run(core, program, pass_instr(program).min(most), *seed)
    })?;
    let told: Vec<Single> = told.into_iter().collect::<Result<_, _>>()?;
    let each = told.chunks_exact(2 * runs as usize);
    let row = |(program, both): (&Arc<ProgramSpec>, &[Single])| {
        let (large, small) = both.split_at(runs as usize);
        Row {
            name: program.name.clone(),
            large: large.to_vec(),
            small: small.to_vec(),
        }
    };
    let mut rows: Vec<Row> = programs.iter().zip(each).map(row).collect();
    let key = |row: &Row| row.ratio().value().unwrap_or(0.0);
    rows.sort_by(|a, b| key(b).total_cmp(&key(a)));
    Ok(rows)
}

/// The average and every program's bar.
fn headline(rows: &[Row]) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    let all: Vec<f64> = rows.iter().filter_map(|row| row.ratio().value()).collect();
    headline.add("large over small core, average", "ratio", ratios(&all))?;
    for row in rows {
        let key = format!("large over small core, {}", row.name);
        headline.add(&key, "ratio", row.ratio())?;
    }
    Ok(headline.into_table())
}

fn ratios_table(rows: &[Row]) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("ratio", "Large over small"),
        Column::plain("large_ipc", "IPC on the large core"),
        Column::plain("small_ipc", "IPC on the small core"),
    ];
    let mut table = Table::new(
        "programs",
        "Instructions per cycle alone, over runs",
        columns,
    )?;
    for row in rows {
        let ipc = |kind| interval(&row.ipcs(kind));
        let cells = vec![row.ratio(), ipc(Kind::Large), ipc(Kind::Small)];
        table.push(&row.name, cells)?;
    }
    let all: Vec<f64> = rows.iter().filter_map(|row| row.ratio().value()).collect();
    let side = |kind| {
        let means = rows
            .iter()
            .filter_map(|row| interval(&row.ipcs(kind)).value());
        ratios(&means.collect::<Vec<_>>())
    };
    let cells = vec![ratios(&all), side(Kind::Large), side(Kind::Small)];
    table.push("all", cells)?;
    Ok(table)
}

/// Causes that there are alone on a core, by number.
fn causes() -> impl Iterator<Item = (usize, &'static str)> {
    let all = Stack::NAMES.into_iter().enumerate();
    all.filter(|(_, name)| !NOT_ALONE.contains(name))
}

fn stacks_table(rows: &[Row]) -> Result<Table, StudyError> {
    let mut columns = vec![Column::plain("cpi", "Cycles per instruction")];
    columns.extend(causes().map(|(_, name)| Column::plain(&format!("cpi_{name}"), name)));
    let mut table = Table::new("stacks", "Cycles per instruction by cause", columns)?;
    for row in rows {
        for (kind, name) in [(Kind::Large, "large"), (Kind::Small, "small")] {
            let whole = row
                .ipcs(kind)
                .iter()
                .map(|ipc| 1.0 / ipc)
                .collect::<Vec<_>>();
            let mut cells = vec![interval(&whole)];
            cells.extend(causes().map(|(cause, _)| row.cpi(kind, cause)));
            table.push(&format!("{}/{name}", row.name), cells)?;
        }
    }
    Ok(table)
}

fn ratio_figure(rows: &[Row]) -> Result<Figure, StudyError> {
    let drawing = Drawing {
        key: "ratio",
        title: "Instructions per cycle, large core over small core",
        text: "From the program that a large core speeds up most to the one that it does least.",
        category: "Program",
    };
    let names = rows.iter().map(|row| row.name.clone()).collect();
    let cells = rows.iter().map(Row::ratio).collect();
    let axis = Axis::linear("Large over small", None);
    let runs = rows.first().map_or(0, |row| row.large.len());
    bars(
        &drawing,
        runs,
        (axis, 1.0),
        names,
        &[("IPC".to_owned(), cells)],
    )
}

fn stack_figure(rows: &[Row], kind: Kind) -> Result<Figure, StudyError> {
    let (key, core) = match kind {
        Kind::Large => ("large-stack", "large"),
        Kind::Small => ("small-stack", "small"),
    };
    // Hundredths are what a cell shows; the table has all digits.
    let shown = |cell: Cell| cell.value().map(|cpi| (100.0 * cpi).round() / 100.0);
    let line = |row: &Row| causes().map(|(c, _)| shown(row.cpi(kind, c))).collect();
    let map = HeatMap {
        x: "Cause".to_owned(),
        y: "Program".to_owned(),
        value: Axis::linear("Cycles per instruction", None),
        columns: causes().map(|(_, name)| name.to_owned()).collect(),
        rows: rows.iter().map(|row| row.name.clone()).collect(),
        cells: rows.iter().map(line).collect(),
    };
    let title = format!("Where cycles go on the {core} core");
    let text =
        "Programs in the order of the ratio; a row's cells sum to its cycles per instruction.";
    let runs = rows.first().map_or(0, |row| row.large.len());
    Ok(Figure::new(key, &title, text, runs, Plot::HeatMap(map))?)
}

fn notes(rows: &[Row]) -> Vec<String> {
    let all: Vec<f64> = rows.iter().filter_map(|row| row.ratio().value()).collect();
    let end = |row: Option<&Row>| row.map_or_else(String::new, saved);
    vec![
        format!(
            "A large core is {:.2} times as fast on average (geometric mean of {} programs), {:.2} to \
             {:.2} times.",
            geometric_mean(&all).unwrap_or(f64::NAN),
            all.len(),
            all.iter().copied().fold(f64::INFINITY, f64::min),
            all.iter().copied().fold(0.0, f64::max),
        ),
        format!(
            "Cycles per instruction that the large core saves, by cause. {} {}",
            end(rows.first()),
            end(rows.last())
        ),
        "An in-order core stops at the first use of a value that is not there: latencies of the \
         L1, of the units and of misses that a large core's window covers are all waited for, and \
         misses overlap only as far as the first use is away. What the large core cannot hide \
         either are mispredicted branches, which cost it more, as its pipe is longer, and misses \
         that depend on each other."
            .to_owned(),
    ]
}

/// What a program's cycles on the small core are spared on the large one, the largest causes.
fn saved(row: &Row) -> String {
    let cpi = |kind, cause| row.cpi(kind, cause).value().unwrap_or(0.0);
    let mut saved: Vec<(&str, f64)> = causes()
        .map(|(cause, name)| (name, cpi(Kind::Small, cause) - cpi(Kind::Large, cause)))
        .collect();
    saved.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let words = { saved.iter().take(3) }.map(|(name, cycles)| format!("{name} {cycles:.2}"));
    let ratio = row.ratio().text();
    format!(
        "{} ({ratio}): {}.",
        row.name,
        words.collect::<Vec<_>>().join(", ")
    )
}
