//! M10: streamcluster with blackscholes, isolated or interleaved.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::measures::{CYCLES, L1D, L2, LATENCY, PREFETCHED, TRANSACTIONS, UTILISATION};
use super::mapping::of_pair::PairStudy;
use super::mapping::{DIFFERS, SEED, SOURCE};
use crate::study::StudyInfo;

/// The study.
pub(super) const M10: PairStudy = PairStudy {
    info: StudyInfo {
        id: "M10",
        title: "streamcluster with blackscholes, iso against int, with breakdown",
        source: SOURCE,
        section: "performance analysis: attribution",
        original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. streamcluster with blackscholes under iso and \
               int: execution time, and what of the difference each resource causes.",
        differs: DIFFERS,
        default_seed: SEED,
        full_seconds_hint: 130,
    },
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
    mechanism: &[
        "Utilisation is the same, since each program has two cores under both. blackscholes needs so \
     little cache that it hardly matters to it whose L2 it is in: under int it is a little \
     slower, by data and code that streamcluster pushes out. streamcluster misses less under \
     int, where two of its threads share an L2 with a program that leaves most of it alone, and is \
     slower all the same: its siblings are on different prefetchers, what these bring in vain does \
     not overlap, and its lines queue for the bus.",
    ],
};
