//! M2: x264 with streamcluster, programs interleaved or spread.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::measures::{CYCLES, L1D, L2, LATENCY, PREFETCHED, TRANSACTIONS, UTILISATION};
use super::mapping::of_pair::PairStudy;

/// The study.
pub(super) const M2: PairStudy = PairStudy {
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
    figures: &[
        (L2, "L2 misses that are waited for"),
        (PREFETCHED, "Lines that prefetchers bring"),
    ],
};
