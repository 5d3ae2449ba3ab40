//! M3: branch misses of streamcluster with swaptions.
//!
//! Keys: see [`super::mapping::pair`].

use super::mapping::measures::{BRANCH_CYCLES, BRANCHES, CYCLES, UTILISATION};
use super::mapping::of_pair::PairStudy;
use super::mapping::plan::MAPPINGS;

/// The study.
pub(super) const M3: PairStudy = PairStudy {
    pair: ["streamcluster", "swaptions"],
    mappings: &MAPPINGS,
    measures: &[BRANCHES, BRANCH_CYCLES, CYCLES, UTILISATION],
    headline: &[BRANCHES, BRANCH_CYCLES],
    change: None,
    figures: &[
        (BRANCHES, "Branch misses"),
        (BRANCH_CYCLES, "Cycles for branch misses"),
    ],
};
