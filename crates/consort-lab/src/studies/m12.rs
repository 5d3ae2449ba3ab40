//! M12: bodytrack with streamcluster: much input and output beside much bandwidth.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::measures::{CYCLES, L1D, L2, LATENCY, TRANSACTIONS, UTILISATION};
use super::mapping::of_pair::PairStudy;
use super::mapping::plan::MAPPINGS;

/// The study.
pub(super) const M12: PairStudy = PairStudy {
    pair: ["streamcluster", "bodytrack"],
    mappings: &MAPPINGS,
    measures: &[CYCLES, L1D, L2, LATENCY, TRANSACTIONS, UTILISATION],
    headline: &[CYCLES, UTILISATION],
    change: Some(["iso", "int"]),
    figures: &[
        (UTILISATION, "Utilisation of the cores"),
        (LATENCY, "Memory latency"),
    ],
};
