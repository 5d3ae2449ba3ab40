//! A7: how much of the traffic to the LLC the large core makes, from the runs of A4.
//!
//! Keys. Tables `threads`: rows `THREADS/POLICY` and `all/POLICY`; `programs`: rows
//! `PROGRAM/POLICY`; columns `llc_percent` (of the LLC's accesses), `instructions_percent` (of the
//! instructions). Figure `programs`.

use super::asymmetry::grid::Grid;
use super::asymmetry::runs::{self, FAIR, HRRS, LINUX};
use super::asymmetry::views::{
    Drawing, Measure, by_program, by_threads, ends, figure, label, ranked, table,
};
use super::asymmetry::{DIFFERS_GROUP, SEED, SOURCE};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct A7;

static INFO: StudyInfo = StudyInfo {
    id: "A7",
    title: "Share of LLC accesses made by the large core",
    source: SOURCE,
    section: "HRRS, accesses to the shared cache",
    original: "The runs of its study of single-threaded programs (see A4): accesses to the shared L3 that \
               the large core makes, under each scheduler.",
    differs: DIFFERS_GROUP,
    default_seed: SEED,
    full_seconds_hint: 70,
};

const LLC: Measure = Measure::mean(
    "llc_percent",
    "LLC accesses by the large core",
    Some("%"),
    |o| 100.0 * o.large_accesses,
);
const INSTRUCTIONS: Measure = Measure::mean(
    "instructions_percent",
    "Instructions on the large core",
    Some("%"),
    |o| 100.0 * o.large_instructions,
);

impl Study for A7 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let grid = runs::spec(context)?;
        let all: Vec<&str> = grid.policies.iter().map(String::as_str).collect();
        let (programs, threads) = (by_program(&grid), by_threads(&grid));
        let columns = [LLC, INSTRUCTIONS];
        let heading = "What the large core does, over programs, with intervals over programs";
        let drawing = Drawing {
            key: "programs",
            title: "Share of LLC accesses made by the large core",
            text: "A quarter would be the share of one core of four; intervals are over numbers \
                   of threads.",
            category: "Program",
        };
        Ok(StudyOutput {
            tables: vec![
                table(&grid, ("threads", heading), &threads, &all, &columns)?,
                table(&grid, ("programs", "By program"), &programs, &all, &columns)?,
            ],
            figures: vec![figure(
                &grid,
                &drawing,
                &programs,
                &[LINUX, HRRS, FAIR],
                &LLC,
            )?],
            notes: notes(&grid, &all),
            runs: grid.runs,
        })
    }
}

fn notes(grid: &Grid, policies: &[&str]) -> Vec<String> {
    let every: Vec<usize> = (0..grid.keys.len()).collect();
    let one = |policy: &&str| {
        let of = |measure: &Measure| measure.cell(grid, &every, policy).text();
        format!("{} {} ({})", label(policy), of(&LLC), of(&INSTRUCTIONS))
    };
    let all: Vec<String> = policies.iter().map(one).collect();
    vec![
        format!(
            "Percent of the LLC's accesses made by the large core, and of the instructions in \
             parentheses: {}.",
            all.join(", ")
        ),
        format!(
            "By program under hrrs, {}. A thread makes the same accesses per instruction on either \
             kind of core here, both have an L2 of the same size, so the share is that of the \
             instructions: with a large core r times as fast as each of three small ones \
             r/(r + 3), whoever is on it and whatever the scheduler. Accesses that refill caches after a move are part of the \
             time that a move costs and are not counted.",
            ends(&ranked(grid, &by_program(grid), HRRS, &LLC), 3)
        ),
    ]
}
