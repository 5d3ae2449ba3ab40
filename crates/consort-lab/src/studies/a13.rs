//! A13: tcs and its rivals on drawn pairs of SPEC programs.
//!
//! Keys: see [`super::asymmetry::spec_mixes`] and [`super::asymmetry::favours`]. Tables `headline`, `policies`, `mixes` (rows are the programs
//! joined by `+`, and `all`) and `programs`; figures `sorted` and `averages`.

use super::asymmetry::compared::{Compared, STP};
use super::asymmetry::grid::Grid;
use super::asymmetry::spec_mixes::{self, Plan};
use super::asymmetry::{SEED, SOURCE, favours, readings};
use super::symbiosis::cells::bar;
use super::symbiosis::memo::Memo;
use crate::context::Context;
use crate::report::{Axis, BarSeries, Bars, Figure, Plot};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use std::sync::Arc;

/// The study.
pub(super) struct A13;

static INFO: StudyInfo = StudyInfo {
    id: "A13",
    title: "tcs and its rivals on 100 pairs of SPEC programs, one large and one small core",
    source: SOURCE,
    section: "TCS, multi-programmed workloads on two cores",
    original: "Sniper, one large and one small core. 100 random mixes of two programs of SPEC \
               CPU2006 under trait-aware criticality scheduling: weighted speedup over threads \
               pinned to cores, sorted; averages of random, memory-dominance, MLP-ratio, PIE and \
               TCS.",
    differs: "The machine is simulated at the level of rates, and the programs are profiles of 29 \
              programs. 100 pairs of different programs are drawn by the seed (8 at the quick \
              scale); a program's work is that of 0.5 s alone on the large core (0.1 s), and \
              programs start again until both have done it. pinned is the mean over both \
              assignments. random deals threads to cores anew \
              every 4 ms, the quantum of the others in software. hrrs is added. The source tells in \
              two ways whom the long-term sum of tcs sends to the large core; both are run.",
    default_seed: SEED,
    full_seconds_hint: 50,
};

/// What is run.
const PLAN: Plan = Plan {
    machine: "acmp-1+1",
    size: 2,
    mixes: [8, 100],
    runs: [2, 3],
    policies: &[
        "pinned",
        RANDOM,
        "mem-dominance",
        "mlp-ratio",
        "pie",
        "hrrs",
        readings::LAGGING,
        readings::CRITICAL,
    ],
};

const RANDOM: &str = "random every 4 ms";

/// The policies whose curves are shown.
const SORTED: [&str; 5] = [RANDOM, "pie", "hrrs", readings::LAGGING, readings::CRITICAL];

/// The source's words.
const NAMES: [(&str, &str); 7] = [
    (RANDOM, "random"),
    ("mem-dominance", "memory-dominance"),
    ("mlp-ratio", "MLP-ratio"),
    ("pie", "PIE"),
    (readings::CRITICAL, "tcs"),
    (readings::LAGGING, "tcs by its worked example"),
    ("hrrs", "hrrs"),
];

static MADE: Memo<Grid> = Memo::new();

/// The runs, made once.
pub(super) fn grid(context: &Context<'_>) -> Result<Arc<Grid>, StudyError> {
    MADE.get(context, || PLAN.grid(context))
}

impl Study for A13 {
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
                spec_mixes::headline(&all, "pairs of SPEC programs", &NAMES)?,
                spec_mixes::policies_table(&all)?,
                spec_mixes::mixes_table(&all)?,
                programs,
            ],
            figures: vec![spec_mixes::sorted(&all, &SORTED)?, averages(&all)?],
            notes,
            runs: grid.runs,
        })
    }
}

/// A bar for each policy.
fn averages(all: &Compared<'_>) -> Result<Figure, StudyError> {
    let cases = all.grid.cases(|_| true);
    let of = |&policy: &usize| bar(&all.grid.ratio_of(&cases, policy, all.base, STP));
    let bars = Bars {
        category: "Policy".to_owned(),
        value: Axis::linear("Weighted speedup over pinned", None),
        baseline: 1.0,
        groups: all
            .others
            .iter()
            .map(|&p| all.grid.policies[p].clone())
            .collect(),
        series: vec![BarSeries {
            name: String::new(),
            bars: all.others.iter().map(of).collect(),
        }],
    };
    let title = "Pairs of SPEC programs on 1 large and 1 small core: average weighted speedup";
    let text = "Geometric means over the pairs; intervals are over pairs.";
    Ok(Figure::new(
        "averages",
        title,
        text,
        all.grid.runs,
        Plot::Bars(bars),
    )?)
}

const MECHANISM: [&str; 3] = [
    "For a pair there are two assignments, and throughput asks for the one in which the program that \
    gains more has the large core. pinned is the mean of both; random and hrrs have both in turn, which \
    is the same but for what moves cost: at 4 ms less, at 1 ms more.",
    "mem-dominance sends programs to the small core that are bound by memory, whether their misses \
    overlap or not; mlp-ratio keeps those on the large core whose misses overlap there; pie weighs both \
    by estimates of one core from the other.",
    "tcs gives the large core to the program that commits fewest instructions, which is the better \
    assignment only where the slower program gains more. The set of active threads does not change \
    after the first quantum, so the two readings of the long-term sum do all but the same.",
];
