//! M10: streamcluster with blackscholes, isolated or interleaved.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::measures::{CYCLES, L1D, L2, LATENCY, PREFETCHED, TRANSACTIONS, UTILISATION};
use super::mapping::of_pair::PairStudy;

/// The study.
pub(super) const M10: PairStudy = PairStudy {
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
