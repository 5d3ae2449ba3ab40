//! M3: branch misses of streamcluster with swaptions.
//!
//! Keys: see [`super::mapping::pair`].

use super::mapping::measures::{BRANCH_CYCLES, BRANCHES, CYCLES, Measure, UTILISATION};
use super::mapping::pair::PairView;
use super::mapping::plan::{MAPPINGS, Pair};
use super::mapping::{DIFFERS, SEED, SOURCE, notes, sweep};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct M3;

static INFO: StudyInfo = StudyInfo {
    id: "M3",
    title: "Branch misses of streamcluster with swaptions",
    source: SOURCE,
    section: "key resources: branch predictors",
    original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. Branch misses of streamcluster and swaptions \
               under each mapping, and what they cost.",
    differs: DIFFERS,
    default_seed: SEED,
    full_seconds_hint: 25,
};

impl Study for M3 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let runs = sweep::runs(context)?;
        let view = PairView {
            runs: &runs,
            pair: PAIR,
            mappings: &MAPPINGS,
            measures: &MEASURES,
        };
        let mut told = vec![view.sentence()];
        told.extend(notes::stopped(&runs));
        told.extend(MECHANISM.map(str::to_owned));
        Ok(StudyOutput {
            tables: vec![view.table()?],
            figures: vec![
                view.figure(BRANCHES, "Branch misses")?,
                view.figure(BRANCH_CYCLES, "Cycles for branch misses")?,
                view.speeds()?,
            ],
            notes: told,
            runs: runs.seeds,
        })
    }
}

const PAIR: Pair = ["streamcluster", "swaptions"];

const MEASURES: [Measure; 4] = [BRANCHES, BRANCH_CYCLES, CYCLES, UTILISATION];

const MECHANISM: [&str; 1] = [
    "A stranger that takes turns on a core overwrites what the branch predictor has learnt, \
     and the shorter a thread's turns the more of its branches it mispredicts: streamcluster, \
     which runs from barrier to barrier, has more misses where it takes turns with swaptions, \
     which is os and, by little, spr, than where it does with siblings. These run the same \
     code and train the predictor for each other. It is little: streamcluster has few \
     branches, and swaptions, which has many, runs long enough to learn again soon. As a \
     share of the cycles it even falls where other stalls grow.",
];
