//! A8: deciding every 1 ms, in hardware, against every 4 ms, in the operating system.
//!
//! Keys. Tables `single` (the runs of A4) and `parallel` (SPLASH-2): rows `THREADS/POLICY` and
//! `all/POLICY`, where policies are `hrrs`, `fair-progress` and, for SPLASH-2, `kuths`; columns
//! `speed_1ms_over_4ms` (time until the last instance is done, inverted), `stp_1ms_over_4ms`,
//! `speed_1ms_over_linux`, `speed_4ms_over_linux`, `moves_1ms_hz`, `moves_4ms_hz`. Figures
//! `single`, `parallel`.

use super::asymmetry::case::Value;
use super::asymmetry::grid::Grid;
use super::asymmetry::runs::{self, LINUX};
use super::asymmetry::views::{Drawing, Group, Measure, bars, by_threads};
use super::asymmetry::{DIFFERS_GROUP, SEED, SOURCE};
use crate::context::Context;
use crate::report::{Axis, Cell, Column, Figure, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct A8;

static INFO: StudyInfo = StudyInfo {
    id: "A8",
    title: "Quanta of 1 ms in hardware against 4 ms in the operating system",
    source: SOURCE,
    section: "hardware against software quanta of hrrs, the fairness-aware scheduler and kuths",
    original: "Each scheduler at the hardware's quantum of 1 ms and at the operating system's of 4 \
               ms, on one large and three small cores.",
    differs: DIFFERS_GROUP,
    default_seed: SEED,
    full_seconds_hint: 85,
};

/// Policies that have both forms.
const POLICIES: [&str; 3] = ["hrrs", "fair-progress", "kuths"];
const SPEED: Value = |o| 1.0 / o.makespan_s;
const STP: Value = |o| o.stp;
const MOVES: Value = |o| o.migration_hz;

impl Study for A8 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let (spec, splash) = (runs::spec(context)?, runs::splash(context)?);
        let single = ("single", "Single-threaded programs, over programs");
        let parallel = ("parallel", "Multithreaded programs, over programs");
        Ok(StudyOutput {
            tables: vec![table(&spec, single)?, table(&splash, parallel)?],
            figures: vec![
                drawn(&spec, ("single", "Speed at 1 ms over 4 ms, SPEC CPU2006"))?,
                drawn(&splash, ("parallel", "Speed at 1 ms over 4 ms, SPLASH-2"))?,
            ],
            notes: notes(&spec, &splash),
            runs: spec.runs,
        })
    }
}

/// The forms of the policies that were run.
fn pairs(grid: &Grid) -> impl Iterator<Item = (&'static str, String, String)> {
    let pair = |name: &'static str| {
        let form = |form: &str| format!("{name}:form={form}");
        let (hardware, software) = (form("hardware"), form("software"));
        let both = grid.policy(&hardware).and(grid.policy(&software));
        both.map(|_| (name, hardware, software))
    };
    POLICIES.into_iter().filter_map(pair)
}

/// A value of a policy over that of another.
fn over(grid: &Grid, group: &[usize], (ours, theirs): (&str, &str), value: Value) -> Cell {
    match (grid.policy(ours), grid.policy(theirs)) {
        (Some(ours), Some(theirs)) => grid.ratio_of(group, ours, theirs, value),
        _ => Cell::missing("not run"),
    }
}

fn table(grid: &Grid, (key, title): (&str, &str)) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("speed_1ms_over_4ms", "Speed at 1 ms over 4 ms"),
        Column::plain("stp_1ms_over_4ms", "STP at 1 ms over 4 ms"),
        Column::plain("speed_1ms_over_linux", "Speed at 1 ms over linux"),
        Column::plain("speed_4ms_over_linux", "Speed at 4 ms over linux"),
        Column::with_unit("moves_1ms_hz", "Moves at 1 ms", "1/s"),
        Column::with_unit("moves_4ms_hz", "Moves at 4 ms", "1/s"),
    ];
    let mut table = Table::new(key, title, columns)?;
    for (threads, group) in by_threads(grid) {
        for (name, hardware, software) in pairs(grid) {
            let (one, four) = (hardware.as_str(), software.as_str());
            let moves = Measure::mean("moves", "", None, MOVES);
            let cells = vec![
                over(grid, &group, (one, four), SPEED),
                over(grid, &group, (one, four), STP),
                over(grid, &group, (one, LINUX), SPEED),
                over(grid, &group, (four, LINUX), SPEED),
                moves.cell(grid, &group, one),
                moves.cell(grid, &group, four),
            ];
            table.push(&format!("{threads}/{name}"), cells)?;
        }
    }
    Ok(table)
}

fn drawn(grid: &Grid, (key, title): (&str, &str)) -> Result<Figure, StudyError> {
    let groups = by_threads(grid);
    let series = |(name, one, four): (&str, String, String)| {
        let cell = |(_, group): &Group| over(grid, group, (&one, &four), SPEED);
        (name.to_owned(), groups.iter().map(cell).collect())
    };
    let series: Vec<(String, Vec<Cell>)> = pairs(grid).map(series).collect();
    let drawing = Drawing {
        key,
        title,
        text: "Intervals are over programs.",
        category: "Threads",
    };
    let names = groups.iter().map(|(threads, _)| threads.clone()).collect();
    let axis = (Axis::linear("Speed at 1 ms over 4 ms", None), 1.0);
    bars(&drawing, grid.runs, axis, names, &series)
}

fn notes(spec: &Grid, splash: &Grid) -> Vec<String> {
    let suite = |name: &str, grid: &Grid| {
        let all: Vec<usize> = (0..grid.keys.len()).collect();
        let one = |(policy, one, four): (&str, String, String)| {
            let of = |value| over(grid, &all, (&one, &four), value).text();
            format!("{policy} speed {}, throughput {}", of(SPEED), of(STP))
        };
        let each: Vec<String> = pairs(grid).map(one).collect();
        format!("{name}, 1 ms over 4 ms: {}.", each.join("; "))
    };
    vec![
        suite("SPEC CPU2006", spec),
        suite("SPLASH-2", splash),
        "A quantum of 1 ms has four times the moves, each of which costs registers, pipeline and \
         private caches. What it buys is that nobody waits long for the large core: the \
         operating system's slice of 4 ms is a whole round of the hardware's quanta on four cores, \
         so that every thread has its part of the large core in every slice. With a quantum as long \
         as the slice, threads that share a logical core change with it in step: of two on \
         each of four cores, the same one is on whenever their turn for the large core comes."
            .to_owned(),
    ]
}
