//! A12: tcs and hrrs on drawn mixes of four SPEC programs.
//!
//! Keys: see [`super::asymmetry::spec_mixes`] and [`super::asymmetry::favours`]. Tables `headline`, `policies`, `mixes` (rows are the programs
//! joined by `+`, and `all`) and `programs`; figure `sorted`.

use super::asymmetry::grid::Grid;
use super::asymmetry::runs::{FAIR, FAIR_4MS};
use super::asymmetry::spec_mixes::{self, Plan};
use super::asymmetry::{SEED, SOURCE, favours, readings};
use super::symbiosis::memo::Memo;
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use std::sync::Arc;

/// The study.
pub(super) struct A12;

static INFO: StudyInfo = StudyInfo {
    id: "A12",
    title: "tcs and hrrs on mixes of SPEC programs, one large and three small cores",
    source: SOURCE,
    section: "TCS, multi-programmed workloads",
    original: "Sniper, one large and three small cores. Random mixes of programs of SPEC CPU2006 \
               under trait-aware criticality scheduling, hardware round-robin and fairness-aware \
               scheduling: weighted speedup of each mix over threads pinned to cores, sorted.",
    differs: "The machine is simulated at the level of rates, and the programs are profiles of 29 \
              programs. 60 mixes of 4 different programs are drawn by the seed (6 at the quick \
              scale); a program's work is that of 0.5 s alone on the large core (0.1 s), and \
              programs start again until all have done it. pinned is the mean over the four programs to \
              which it can give the large core. fair-progress is run in hardware, every 1 ms, and in \
              the operating system, every 4 ms. The source tells in two ways whom the long-term sum \
              sends to the large core; both readings are run.",
    default_seed: SEED,
    full_seconds_hint: 70,
};

/// What is run.
const PLAN: Plan = Plan {
    machine: "acmp-1+3",
    size: 4,
    mixes: [6, 60],
    runs: [2, 3],
    policies: &[
        "pinned",
        "hrrs",
        FAIR,
        FAIR_4MS,
        readings::LAGGING,
        readings::CRITICAL,
    ],
};

/// The source's words.
const NAMES: [(&str, &str); 5] = [
    (readings::CRITICAL, "tcs"),
    (readings::LAGGING, "tcs by its worked example"),
    ("hrrs", "hrrs"),
    (FAIR, "fair-progress"),
    (FAIR_4MS, "fair-progress every 4 ms"),
];

static MADE: Memo<Grid> = Memo::new();

/// The runs, made once.
pub(super) fn grid(context: &Context<'_>) -> Result<Arc<Grid>, StudyError> {
    MADE.get(context, || PLAN.grid(context))
}

impl Study for A12 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn mechanism(&self) -> &'static [&'static str] {
        &MECHANISM
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let grid = grid(context)?;
        let all = spec_mixes::compared(&grid);
        let (programs, favoured) = favours::programs(context, &PLAN, &grid)?;
        let mut notes = spec_mixes::notes(&all);
        notes.extend(favoured);
        Ok(StudyOutput {
            tables: vec![
                spec_mixes::headline(&all, "mixes of 4 SPEC programs", &NAMES)?,
                spec_mixes::policies_table(&all)?,
                spec_mixes::mixes_table(&all)?,
                programs,
            ],
            figures: vec![spec_mixes::sorted(&all, PLAN.policies)?],
            notes,
            runs: grid.runs,
        })
    }
}

const MECHANISM: [&str; 3] = [
    "Weighted speedup adds up rates. A policy that gives every program an equal turn on the large \
    core therefore has the mean over all assignments of that core, as pinned has here. What hrrs lacks \
    against it is what its moves cost; what it has for that is evenness: nobody is on a small core all \
    the time (columns `antt` and `unfairness`).",
    "The short-term counter of tcs picks the program with the fewest instructions in the quantum: \
    the slower a program, the more of the large core it has (its slowdown goes with its speed). \
    Throughput gains where the slow programs are those that gain most from the large core, and loses \
    where they are not (table `programs`).",
    "Single-threaded programs neither block nor spin, so the set of active threads does not change \
    after the first quantum: the long-term sum decides once, at its end, and its two readings do \
    all but the same.",
];
