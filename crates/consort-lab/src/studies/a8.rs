//! A8: deciding every 1 ms, in hardware, against every 4 ms, in the operating system.
//!
//! Keys. Table `headline`; tables `single` (the runs of A4) and `parallel` (SPLASH-2): rows `THREADS/POLICY` and
//! `all/POLICY`, where policies are `hrrs`, `fair-progress` and, for SPLASH-2, `kuths`; columns
//! `speed_1ms_over_4ms` (time until the last instance is done, inverted), `speed_1ms_over_base`,
//! `speed_4ms_over_base` (`linux-acmp`), `moves_1ms_hz`, `moves_4ms_hz`. Figures `single`,
//! `parallel`.

use super::asymmetry::case::Value;
use super::asymmetry::grid::Grid;
use super::asymmetry::headlines::over;
use super::asymmetry::runs;
use super::asymmetry::views::{Drawing, Group, Measure, bars, by_threads};
use super::asymmetry::{BASE, DIFFERS_GROUP, SEED, SOURCE};
use crate::context::Context;
use crate::report::{Axis, Cell, Column, Figure, Headline, Table};
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
    full_seconds_hint: 105,
};

/// Policies that have both forms.
const POLICIES: [&str; 3] = ["hrrs", "fair-progress", "kuths"];
const SPEED: Value = |o| 1.0 / o.makespan_s;
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
            tables: vec![
                headline(&spec, &splash)?,
                table(&spec, single)?,
                table(&splash, parallel)?,
            ],
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

/// Every policy that has both forms, on either suite.
fn headline(spec: &Grid, splash: &Grid) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (grid, suite) in [(spec, "SPEC"), (splash, "SPLASH-2")] {
        let every: Vec<usize> = (0..grid.keys.len()).collect();
        for (name, one, four) in pairs(grid) {
            let rows = [
                (
                    format!("{name} every 1 ms over 4 ms, {suite}"),
                    &one,
                    &*four,
                ),
                (format!("{name} every 1 ms over linux, {suite}"), &one, BASE),
                (
                    format!("{name} every 4 ms over linux, {suite}"),
                    &four,
                    BASE,
                ),
            ];
            for (row, ours, theirs) in rows {
                headline.add_gain(&row, over(grid, &every, (ours, theirs), SPEED))?;
            }
        }
    }
    Ok(headline.into_table())
}

fn table(grid: &Grid, (key, title): (&str, &str)) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("speed_1ms_over_4ms", "Speed at 1 ms over 4 ms"),
        Column::plain("speed_1ms_over_base", "Speed at 1 ms over linux-acmp"),
        Column::plain("speed_4ms_over_base", "Speed at 4 ms over linux-acmp"),
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
                over(grid, &group, (one, BASE), SPEED),
                over(grid, &group, (four, BASE), SPEED),
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
            let speed = over(grid, &all, (&one, &four), SPEED).text();
            format!("{policy} {speed}")
        };
        let each: Vec<String> = pairs(grid).map(one).collect();
        format!("{name}, speed at 1 ms over 4 ms: {}.", each.join("; "))
    };
    vec![
        suite("SPEC CPU2006", spec),
        suite("SPLASH-2", splash),
        "A quantum of 1 ms has more moves, each of which costs registers, pipeline and private \
         caches. What it buys is that nobody waits long for the large core: the \
         operating system's slice of 4 ms is a whole round of the hardware's quanta on four cores. \
         Quanta of 4 ms are aligned with the slices, and one of eleven is a slice longer, so that \
         threads of a core all have their part of its time on the large one. In step, the same one \
         would be on whenever its turn comes."
            .to_owned(),
    ]
}
