//! A4: single-threaded programs on one large and three small cores, over the default scheduler.
//!
//! Keys. Tables `threads`: rows `THREADS/POLICY` and `all/POLICY`; `programs`: rows
//! `PROGRAM/POLICY`; both have the columns `speed_over_linux` (time until the last instance is
//! done, inverted), `stp_over_linux`, `stp`, `antt`, `unfairness`, `moves_hz`. Policies are
//! `linux`, `hrrs-1ms`, `hrrs-4ms`, `fair-progress-1ms`, `fair-progress-4ms`. Figures `speed`,
//! `stp`, `threads`.

use super::asymmetry::grid::Grid;
use super::asymmetry::runs::{self, FAIR, HRRS, LINUX};
use super::asymmetry::views::{
    Drawing, Measure, beyond, by_program, by_threads, ends, figure, label, ranked, table,
};
use super::asymmetry::{DIFFERS_GROUP, SEED, SOURCE};
use crate::context::Context;
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
               fairness-aware scheduler over linux.",
    differs: DIFFERS_GROUP,
    default_seed: SEED,
    full_seconds_hint: 70,
};

/// Time until the last instance is done, inverted: more is better.
const SPEED: Measure = Measure::over(LINUX, "speed_over_linux", "Speed over linux", |o| {
    1.0 / o.makespan_s
});
const STP: Measure = Measure::over(LINUX, "stp_over_linux", "STP over linux", |o| o.stp);

const MEASURES: [Measure; 6] = [
    SPEED,
    STP,
    Measure::mean("stp", "STP", None, |o| o.stp),
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
        let speed = drawing("speed", "Speed of the last instance over linux", "Program");
        let stp = drawing("stp", "System throughput over linux", "Program");
        let few = drawing("threads", "Speed by number of threads", "Threads");
        Ok(StudyOutput {
            tables: vec![
                table(&grid, ("threads", by_threads), &threads, &all, &MEASURES)?,
                table(&grid, ("programs", by_program), &programs, &all, &MEASURES)?,
            ],
            figures: vec![
                figure(&grid, &speed, &programs, &[HRRS, FAIR], &SPEED)?,
                figure(&grid, &stp, &programs, &[HRRS, FAIR], &STP)?,
                figure(&grid, &few, &threads, &all[1..], &SPEED)?,
            ],
            notes: notes(&grid),
            runs: grid.runs,
        })
    }
}

fn notes(grid: &Grid) -> Vec<String> {
    let policies = grid.policies.iter().skip(1);
    let mut notes: Vec<String> = policies.map(|policy| about(grid, policy)).collect();
    notes.push(
        "With as many threads as cores linux leaves every thread on the core where it was put, \
         and the instance on the large core has long finished when those on small ones have. Round \
         robin gives each the same share of the large core, so the last instance is done sooner \
         and none is slowed down more than the others; what all cores do together, and with it \
         the throughput, it cannot raise: the large core commits as much whoever is on it, and \
         moves cost time. With more threads than cores linux's own time slices on four queues \
         and its balancing, which does not know core types, are part of what is compared."
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
    let (more, less) = beyond(grid, &cases, policy, &STP);
    format!(
        "{}: speed over linux {}, throughput over linux {}. Of {} workloads the last instance is \
         done sooner in {better} and later in {worse}, the throughput is higher in {more} and lower in \
         {less}, where the 95 percent interval leaves out 1. Speed by program, {}.",
        label(policy),
        SPEED.cell(grid, &all, policy).text(),
        STP.cell(grid, &all, policy).text(),
        cases.len(),
        ends(&ranked(grid, &programs, policy, &SPEED), 3),
    )
}
