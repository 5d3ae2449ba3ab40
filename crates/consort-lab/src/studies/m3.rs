//! M3: branch misses of streamcluster with swaptions.
//!
//! Keys: see [`super::mapping::pair`].

use super::mapping::measures::{BRANCH_CYCLES, BRANCHES, CYCLES, UTILISATION};
use super::mapping::of_pair::PairStudy;
use super::mapping::plan::MAPPINGS;
use super::mapping::{DIFFERS, SEED, SOURCE};
use crate::study::StudyInfo;

/// The study.
pub(super) const M3: PairStudy = PairStudy {
    info: StudyInfo {
        id: "M3",
        title: "Branch misses of streamcluster with swaptions",
        source: SOURCE,
        section: "key resources: branch predictors",
        original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. Branch misses of streamcluster and swaptions \
               under each mapping, and what they cost.",
        differs: DIFFERS,
        default_seed: SEED,
        full_seconds_hint: 130,
    },
    pair: ["streamcluster", "swaptions"],
    mappings: &MAPPINGS,
    measures: &[BRANCHES, BRANCH_CYCLES, CYCLES, UTILISATION],
    headline: &[BRANCHES, BRANCH_CYCLES],
    change: None,
    figures: &[
        (BRANCHES, "Branch misses"),
        (BRANCH_CYCLES, "Cycles for branch misses"),
    ],
    mechanism: &[
        "A stranger that takes turns on a core overwrites what the branch predictor has learnt, \
     and the shorter a thread's turns the more of its branches it mispredicts: streamcluster, \
     which runs from barrier to barrier, has more misses where it takes turns with swaptions, \
     which is os and spr, than where it does with siblings. These run the same \
     code and train the predictor for each other. It is little: streamcluster has few \
     branches, and swaptions, which has many, runs long enough to learn again soon. As a \
     share of the cycles it even falls where other stalls grow.",
    ],
};
