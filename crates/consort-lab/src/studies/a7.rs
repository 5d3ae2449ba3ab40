//! A7: how much of the traffic to the LLC the large core makes, and how much all of it grows.
//!
//! Keys. Table `headline`. Tables `parallel-threads` and `parallel-programs` (SPLASH-2, the runs of
//! A6), `threads` and `programs` (SPEC CPU2006, the runs of A4): rows `THREADS/POLICY` and
//! `all/POLICY`, `PROGRAM/POLICY`; columns `llc_percent` (of the LLC's accesses, by the large core),
//! `instructions_percent` (of the instructions), `accesses_over_base` (accesses to the LLC per
//! instruction over those under `linux-acmp`), `accesses_pki` (per 1000 instructions). Figures
//! `parallel-programs`, `parallel-growth`, `programs`.

use super::asymmetry::case::Value;
use super::asymmetry::grid::Grid;
use super::asymmetry::headlines::over;
use super::asymmetry::runs::{self, FAIR, FAIR_4MS, HRRS};
use super::asymmetry::views::{
    Drawing, Measure, by_program, by_threads, ends, figure, label, ranked, table,
};
use super::asymmetry::{BASE, DIFFERS_GROUP, SEED, SOURCE};
use crate::context::Context;
use crate::report::{Figure, Headline, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct A7;

static INFO: StudyInfo = StudyInfo {
    id: "A7",
    title: "Share of LLC accesses made by the large core, and growth of all",
    source: SOURCE,
    section: "HRRS, accesses to the shared cache",
    original: "The runs of its study of SPLASH-2 (see A6): accesses to the shared L3 that the large \
               core makes under each scheduler, and the growth of all accesses over Linux.",
    differs: DIFFERS_GROUP,
    default_seed: SEED,
    full_seconds_hint: 150,
};

const ACCESSES: Value = |o| o.accesses_pki;
const LLC: Measure = Measure::mean(
    "llc_percent",
    "LLC accesses by the large core",
    Some("%"),
    |o| 100.0 * o.large_accesses,
);
const GROWTH: Measure = Measure::over(
    BASE,
    "accesses_over_base",
    "LLC accesses per instruction over linux-acmp",
    ACCESSES,
);
const COLUMNS: [Measure; 4] = [
    LLC,
    Measure::mean(
        "instructions_percent",
        "Instructions on the large core",
        Some("%"),
        |o| 100.0 * o.large_instructions,
    ),
    GROWTH,
    Measure::mean(
        "accesses_pki",
        "LLC accesses per 1000 instructions",
        None,
        ACCESSES,
    ),
];

/// The policies of the source, and what they are called in its words.
const SHOWN: [(&str, &str); 4] = [
    (BASE, "linux"),
    (HRRS, "hrrs"),
    (FAIR, "fair-progress"),
    (FAIR_4MS, "fair-progress every 4 ms"),
];

impl Study for A7 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let (splash, spec) = (runs::splash(context)?, runs::spec(context)?);
        let mut tables = vec![headline(&splash, &spec)?];
        tables.extend(suite_tables(
            &splash,
            ["parallel-threads", "parallel-programs"],
        )?);
        tables.extend(suite_tables(&spec, ["threads", "programs"])?);
        Ok(StudyOutput {
            tables,
            figures: vec![
                drawn(&splash, ("parallel-programs", SHARES, "SPLASH-2"), &LLC)?,
                drawn(&splash, ("parallel-growth", GROWS, "SPLASH-2"), &GROWTH)?,
                drawn(&spec, ("programs", SHARES, "SPEC CPU2006"), &LLC)?,
            ],
            notes: notes(&splash, &spec),
            runs: splash.runs,
        })
    }
}

const SHARES: &str = "Share of LLC accesses made by the large core";
const GROWS: &str = "LLC accesses per instruction over linux-acmp";

/// Both suites over all programs and numbers of threads, the source's first.
fn headline(splash: &Grid, spec: &Grid) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (grid, suite) in [(splash, "SPLASH-2"), (spec, "SPEC")] {
        let every: Vec<usize> = (0..grid.keys.len()).collect();
        for (policy, name) in SHOWN {
            let row = format!("LLC accesses by the large core, {name}, {suite}");
            headline.add(&row, "percent", LLC.cell(grid, &every, policy))?;
        }
        for (policy, name) in &SHOWN[1..] {
            let row = format!("growth of all LLC accesses, {name} over linux, {suite}");
            let growth = over(grid, &every, (policy, BASE), ACCESSES);
            headline.add_gain(&row, growth)?;
        }
    }
    Ok(headline.into_table())
}

fn suite_tables(grid: &Grid, [threads, programs]: [&str; 2]) -> Result<[Table; 2], StudyError> {
    let all: Vec<&str> = grid.policies.iter().map(String::as_str).collect();
    let heading = "What the large core does, over programs, with intervals over programs";
    let by_program = by_program(grid);
    Ok([
        table(grid, (threads, heading), &by_threads(grid), &all, &COLUMNS)?,
        table(grid, (programs, "By program"), &by_program, &all, &COLUMNS)?,
    ])
}

fn drawn(
    grid: &Grid,
    (key, title, suite): (&str, &str, &str),
    measure: &Measure,
) -> Result<Figure, StudyError> {
    let title = format!("{title}, {suite}");
    let drawing = Drawing {
        key,
        title: &title,
        text: "Intervals are over numbers of threads.",
        category: "Program",
    };
    let policies = [BASE, HRRS, FAIR];
    let shown = if measure.over.is_some() {
        &policies[1..]
    } else {
        &policies
    };
    figure(grid, &drawing, &by_program(grid), shown, measure)
}

fn notes(splash: &Grid, spec: &Grid) -> Vec<String> {
    let about = |(grid, suite): (&Grid, &str)| {
        let every: Vec<usize> = (0..grid.keys.len()).collect();
        let one = |policy: &String| {
            let of = |measure: &Measure| measure.cell(grid, &every, policy).text();
            format!("{} {} ({})", label(policy), of(&LLC), of(&GROWTH))
        };
        let all: Vec<String> = grid.policies.iter().map(one).collect();
        format!(
            "{suite}, percent of the LLC's accesses made by the large core, and in parentheses all \
             accesses per instruction over linux-acmp's: {}.",
            all.join(", ")
        )
    };
    let growth = ranked(splash, &by_program(splash), HRRS, &GROWTH);
    vec![
        about((splash, "SPLASH-2")),
        about((spec, "SPEC CPU2006")),
        format!(
            "Growth under hrrs by program, SPLASH-2, {}.",
            ends(&growth, 3)
        ),
    ]
}
