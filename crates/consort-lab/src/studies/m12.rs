//! M12: bodytrack with streamcluster: much input and output beside much bandwidth.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::measures::{CYCLES, L1D, L2, LATENCY, TRANSACTIONS, UTILISATION};
use super::mapping::of_pair::PairStudy;
use super::mapping::plan::MAPPINGS;
use super::mapping::{DIFFERS, SEED, SOURCE, notes};
use crate::study::StudyInfo;

/// The study.
pub(super) const M12: PairStudy = PairStudy {
    info: StudyInfo {
        id: "M12",
        title: "bodytrack with streamcluster under each mapping",
        source: SOURCE,
        section: "performance analysis: guidelines",
        original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. bodytrack with streamcluster, a program with \
               much input and output beside one with much bandwidth, under each mapping.",
        differs: DIFFERS,
        default_seed: SEED,
        full_seconds_hint: 130,
    },
    pair: ["streamcluster", "bodytrack"],
    mappings: &MAPPINGS,
    measures: &[CYCLES, L1D, L2, LATENCY, TRANSACTIONS, UTILISATION],
    headline: &[CYCLES, UTILISATION],
    change: Some(["iso", "int"]),
    figures: &[
        (UTILISATION, "Utilisation of the cores"),
        (LATENCY, "Memory latency"),
    ],
    mechanism: &[
        "Both programs sleep and wake often, and os moves what wakes to whatever core is idle: \
     refills take much of the time of both, and bodytrack, held, has less of the cores and is \
     faster all the same. Under int bodytrack loses data and code to streamcluster, which \
     fills the L2, and streamcluster's siblings are on different prefetchers, where what they \
     bring in vain does not overlap: both are faster under iso. Under spr streamcluster's four \
     threads run together and queue for the bus behind each other.",
        notes::TURNS,
    ],
};
