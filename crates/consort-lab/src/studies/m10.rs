//! M10: streamcluster with blackscholes, isolated or interleaved.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::breakdown::Change;
use super::mapping::measures::{
    CYCLES, L1D, L2, LATENCY, Measure, PREFETCHED, TRANSACTIONS, UTILISATION,
};
use super::mapping::pair::PairView;
use super::mapping::plan::Pair;
use super::mapping::{DIFFERS, SEED, SOURCE, notes, sweep};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct M10;

static INFO: StudyInfo = StudyInfo {
    id: "M10",
    title: "streamcluster with blackscholes, iso against int, with breakdown",
    source: SOURCE,
    section: "performance analysis: attribution",
    original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. streamcluster with blackscholes under iso and \
               int: execution time, and what of the difference each resource causes.",
    differs: DIFFERS,
    default_seed: SEED,
    full_seconds_hint: 25,
};

impl Study for M10 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let runs = sweep::runs(context)?;
        let view = PairView {
            runs: &runs,
            pair: PAIR,
            mappings: &["os", "iso", "int"],
            measures: &MEASURES,
        };
        let change = Change {
            runs: &runs,
            pair: PAIR,
            from: "iso",
            to: "int",
        };
        let mut told = vec![view.sentence()];
        told.extend(notes::stopped(&runs));
        told.extend(MECHANISM.map(str::to_owned));
        Ok(StudyOutput {
            tables: vec![view.table()?, change.table()?],
            figures: vec![view.speeds()?, change.figure()?],
            notes: told,
            runs: runs.seeds,
        })
    }
}

const PAIR: Pair = ["streamcluster", "blackscholes"];

const MEASURES: [Measure; 7] = [
    CYCLES,
    L1D,
    L2,
    LATENCY,
    PREFETCHED,
    TRANSACTIONS,
    UTILISATION,
];

const MECHANISM: [&str; 1] = [
    "iso and int hardly differ. blackscholes needs so little cache that it hardly matters to \
     it whose L2 it is in, and streamcluster so much that it misses anyway; streamcluster \
     gains a little where two of its threads share an L2 with a program that leaves most of \
     it alone (int), and blackscholes loses about as much for having its data and code pushed \
     out. Utilisation is the same, since each program has two cores under both.",
];
