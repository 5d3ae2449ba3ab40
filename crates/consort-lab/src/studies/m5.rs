//! M5: streamcluster with facesim: two programs that both need much bandwidth.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::measures::{CYCLES, L2, LATENCY, TRANSACTIONS, UTILISATION};
use super::mapping::of_pair::PairStudy;
use super::mapping::plan::MAPPINGS;

/// The study.
pub(super) const M5: PairStudy = PairStudy {
    pair: ["facesim", "streamcluster"],
    mappings: &MAPPINGS,
    measures: &[CYCLES, L2, LATENCY, TRANSACTIONS, UTILISATION],
    headline: &[LATENCY, UTILISATION],
    change: Some(["iso", "spr"]),
    figures: &[
        (LATENCY, "Memory latency"),
        (UTILISATION, "Utilisation of the cores"),
    ],
};
