//! M2: x264 with streamcluster, programs interleaved or spread.
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
pub(super) struct M2;

static INFO: StudyInfo = StudyInfo {
    id: "M2",
    title: "x264 with streamcluster, int against spr",
    source: SOURCE,
    section: "key resources: L2 cache and prefetchers",
    original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. x264 with streamcluster under int and spr: \
               which of the two is better, and by which resource.",
    differs: DIFFERS,
    default_seed: SEED,
    full_seconds_hint: 25,
};

impl Study for M2 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let runs = sweep::runs(context)?;
        let view = PairView {
            runs: &runs,
            pair: PAIR,
            mappings: &["os", "int", "spr"],
            measures: &MEASURES,
        };
        let change = Change {
            runs: &runs,
            pair: PAIR,
            from: "int",
            to: "spr",
        };
        let mut told = vec![view.sentence()];
        told.extend(notes::stopped(&runs));
        told.extend(MECHANISM.map(str::to_owned));
        Ok(StudyOutput {
            tables: vec![view.table()?, change.table()?],
            figures: vec![
                view.speeds()?,
                view.figure(L2, "L2 misses that are waited for")?,
                view.figure(PREFETCHED, "Lines that prefetchers bring")?,
                change.figure()?,
            ],
            notes: told,
            runs: runs.seeds,
        })
    }
}

const PAIR: Pair = ["streamcluster", "x264"];

const MEASURES: [Measure; 7] = [
    CYCLES,
    L1D,
    L2,
    LATENCY,
    PREFETCHED,
    TRANSACTIONS,
    UTILISATION,
];

const MECHANISM: [&str; 2] = [
    "Under int the two programs run at the same time and share each L2, which streamcluster \
     fills. x264 then misses more, its prefetchers, which bring far more lines than it uses, \
     load the bus, and its code comes from memory as well. Under spr they take turns: while \
     x264 runs it has caches and bus nearly to itself, and while streamcluster runs, all four \
     of its threads do, which queue for the bus behind each other: its latency is the longest \
     of all mappings. What the one gains by spr the other loses about as much of; under int \
     the cores wait less.",
    notes::TURNS,
];
