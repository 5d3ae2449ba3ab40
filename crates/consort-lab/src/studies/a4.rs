//! A4: single-threaded programs on one large and three small cores, over the default scheduler.
//!
//! Keys. Table `headline`. Tables `threads`: rows `THREADS/POLICY` and `all/POLICY`; `programs`: rows
//! `PROGRAM/POLICY`; both have the columns `speed_over_base` (time until the last instance is
//! done, inverted), `antt`, `unfairness`, `moves_hz`. The base is `linux-acmp`; the other policies
//! are `linux`, `hrrs-1ms`, `hrrs-4ms`, `fair-progress-1ms`, `fair-progress-4ms`. Table
//! `closed-form`: see [`super::asymmetry::closed`]. Figures `speed` and `threads`.

use super::asymmetry::case::Value;
use super::asymmetry::closed::Closed;
use super::asymmetry::grid::Grid;
use super::asymmetry::headlines::{Gain, gains};
use super::asymmetry::programs::SPEC;
use super::asymmetry::runs::{self, FAIR, FAIR_4MS, HRRS, LINUX};
use super::asymmetry::views::{
    Drawing, Measure, beyond, by_program, by_threads, ends, figure, label, ranked, table,
};
use super::asymmetry::{BASE, DIFFERS_GROUP, SEED, SOURCE};
use crate::context::Context;
use crate::report::{Headline, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct A4;

static INFO: StudyInfo = StudyInfo {
    id: "A4",
    title: "Round robin and fair progress on one large and three small cores",
    source: SOURCE,
    section: "HRRS, single-threaded programs",
    original: "SPEC CPU2006 on one large and three small cores, several instances of a program \
               from different phases; 4, 8 and 16 threads averaged; hrrs and the \
               fairness-aware scheduler, both in hardware, over Linux.",
    differs: DIFFERS_GROUP,
    default_seed: SEED,
    full_seconds_hint: 90,
};

/// Time until the last instance is done, inverted: more is better.
const INVERTED: Value = |o| 1.0 / o.makespan_s;
const SPEED: Measure = Measure::over(BASE, "speed_over_base", "Speed over linux-acmp", INVERTED);

const MEASURES: [Measure; 4] = [
    SPEED,
    Measure::mean("antt", "ANTT", None, |o| o.antt),
    Measure::mean("unfairness", "Unfairness", None, |o| o.unfairness),
    Measure::mean("moves_hz", "Moves between cores", Some("1/s"), |o| {
        o.migration_hz
    }),
];

impl Study for A4 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let grid = runs::spec(context)?;
        let closed = Closed::of(context, SPEC)?;
        let all: Vec<&str> = grid.policies.iter().map(String::as_str).collect();
        let (programs, threads) = (by_program(&grid), by_threads(&grid));
        let by_threads = "By number of threads: over programs, with intervals over programs";
        let by_program = "By program: over numbers of threads, with intervals over them";
        let drawing = |key, title, category| Drawing {
            key,
            title,
            text: match category {
                "Program" => "More is better. Intervals are over 4, 8 and 16 threads.",
                _ => "More is better. Intervals are over programs.",
            },
            category,
        };
        let speed = drawing(
            "speed",
            "Speed of the last instance over linux-acmp",
            "Program",
        );
        let few = drawing("threads", "Speed by number of threads", "Threads");
        Ok(StudyOutput {
            tables: vec![
                headline(&grid, &closed)?,
                table(&grid, ("threads", by_threads), &threads, &all, &MEASURES)?,
                table(&grid, ("programs", by_program), &programs, &all, &MEASURES)?,
                closed.table(&grid, INVERTED)?,
            ],
            figures: vec![
                figure(&grid, &speed, &programs, &[HRRS, FAIR], &SPEED)?,
                figure(&grid, &few, &threads, &all[1..], &SPEED)?,
            ],
            notes: notes(&grid),
            runs: grid.runs,
        })
    }
}

/// What the source prints, and the same for the forms that it is set beside here.
const GAINS: [Gain<'_>; 6] = [
    ("hrrs over linux", HRRS, BASE),
    ("fair-progress over linux", FAIR, BASE),
    ("hrrs over fair-progress", HRRS, FAIR),
    ("fair-progress every 4 ms over linux", FAIR_4MS, BASE),
    ("hrrs over fair-progress every 4 ms", HRRS, FAIR_4MS),
    ("linux without core types over linux", LINUX, BASE),
];

fn headline(grid: &Grid, closed: &Closed) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (threads, cases) in by_threads(grid).into_iter().rev() {
        let what = match threads.as_str() {
            "all" => "SPEC".to_owned(),
            _ => format!("SPEC, {threads} threads"),
        };
        gains(&mut headline, (grid, &cases), &what, INVERTED, &GAINS)?;
    }
    headline.add_gain("closed form of hrrs over linux, SPEC", closed.speed())?;
    Ok(headline.into_table())
}

fn notes(grid: &Grid) -> Vec<String> {
    let policies = grid.policies.iter().filter(|name| *name != BASE);
    let mut notes: Vec<String> = policies.map(|policy| about(grid, policy)).collect();
    notes.push(
        "linux-acmp leaves every thread on the core where it was put, and instances that are done \
         start again there, so the last to be done has been on a small core all the time. Round \
         robin gives each the same share of the large core. Were instances equal and moves free, \
         it would be (r + N - 1)/N times as fast on N cores of which one is r times as fast as the \
         others (table `closed-form`), however many instances share a core."
            .to_owned(),
    );
    notes.push(
        "Times are until the last instance is done: the throughput of equal threads is what the \
         cores do together, whoever is on them. The 4 ms of the operating system's policies are as \
         long as its time slices and aligned with them; one of eleven is a slice longer, so that \
         instances that share a core all have their part of its time on the large one."
            .to_owned(),
    );
    notes
}

fn about(grid: &Grid, policy: &str) -> String {
    let programs = by_program(grid);
    let all: Vec<usize> = (0..grid.keys.len()).collect();
    let cases: Vec<(String, Vec<usize>)> = { grid.keys.iter().enumerate() }
        .map(|(case, key)| (key.clone(), vec![case]))
        .collect();
    let (better, worse) = beyond(grid, &cases, policy, &SPEED);
    format!(
        "{}: speed over {BASE} {}. Of {} workloads the last instance is done sooner in {better} and \
         later in {worse}, where the 95 percent interval leaves out 1. By program, {}.",
        label(policy),
        SPEED.cell(grid, &all, policy).text(),
        cases.len(),
        ends(&ranked(grid, &programs, policy, &SPEED), 3),
    )
}
