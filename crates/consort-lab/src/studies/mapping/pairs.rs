//! The studies of one pair of programs; see [`super::of_pair`].
//!
//! Keys: see [`super::pair`] and, where a change of mapping is shown, [`super::breakdown`].

use super::measures::{
    BRANCH_CYCLES, BRANCHES, CYCLES, L1D, L2, LATENCY, PREFETCHED, TRANSACTIONS, UTILISATION,
};
use super::of_pair::PairStudy;
use super::plan::MAPPINGS;

/// M2: x264 with streamcluster, programs interleaved or spread.
pub(in crate::studies) const M2: PairStudy = PairStudy {
    pair: ["streamcluster", "x264"],
    mappings: &["os", "int", "spr"],
    measures: &[
        CYCLES,
        L1D,
        L2,
        LATENCY,
        PREFETCHED,
        TRANSACTIONS,
        UTILISATION,
    ],
    headline: &[L2, PREFETCHED, TRANSACTIONS],
    change: Some(["int", "spr"]),
    figures: &[L2, PREFETCHED],
};

/// M3: branch misses of streamcluster with swaptions.
pub(in crate::studies) const M3: PairStudy = PairStudy {
    pair: ["streamcluster", "swaptions"],
    mappings: &MAPPINGS,
    measures: &[BRANCHES, BRANCH_CYCLES, CYCLES, UTILISATION],
    headline: &[BRANCHES, BRANCH_CYCLES],
    change: None,
    figures: &[BRANCHES, BRANCH_CYCLES],
};

/// M5: streamcluster with facesim: two programs that both need much bandwidth.
pub(in crate::studies) const M5: PairStudy = PairStudy {
    pair: ["facesim", "streamcluster"],
    mappings: &MAPPINGS,
    measures: &[CYCLES, L2, LATENCY, TRANSACTIONS, UTILISATION],
    headline: &[LATENCY, UTILISATION],
    change: Some(["iso", "spr"]),
    figures: &[LATENCY, UTILISATION],
};

/// M10: streamcluster with blackscholes, isolated or interleaved.
pub(in crate::studies) const M10: PairStudy = PairStudy {
    pair: ["streamcluster", "blackscholes"],
    mappings: &["os", "iso", "int"],
    measures: &[
        CYCLES,
        L1D,
        L2,
        LATENCY,
        PREFETCHED,
        TRANSACTIONS,
        UTILISATION,
    ],
    headline: &[CYCLES, L2, LATENCY, UTILISATION],
    change: Some(["iso", "int"]),
    figures: &[],
};

/// M12: bodytrack with streamcluster: much input and output beside much bandwidth.
pub(in crate::studies) const M12: PairStudy = PairStudy {
    pair: ["streamcluster", "bodytrack"],
    mappings: &MAPPINGS,
    measures: &[CYCLES, L1D, L2, LATENCY, TRANSACTIONS, UTILISATION],
    headline: &[CYCLES, UTILISATION],
    change: Some(["iso", "int"]),
    figures: &[UTILISATION, LATENCY],
};
