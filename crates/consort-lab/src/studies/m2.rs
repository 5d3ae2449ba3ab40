//! M2: x264 with streamcluster, programs interleaved or spread.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::measures::{CYCLES, L1D, L2, LATENCY, PREFETCHED, TRANSACTIONS, UTILISATION};
use super::mapping::of_pair::PairStudy;
use super::mapping::{DIFFERS, SEED, SOURCE, notes};
use crate::study::StudyInfo;

/// The study.
pub(super) const M2: PairStudy = PairStudy {
    info: StudyInfo {
        id: "M2",
        title: "x264 with streamcluster, int against spr",
        source: SOURCE,
        section: "key resources: L2 cache and prefetchers",
        original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. x264 with streamcluster under int and spr: \
               which of the two is better, and by which resource.",
        differs: DIFFERS,
        default_seed: SEED,
        full_seconds_hint: 130,
    },
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
    mechanism: &[
        "Under int the two programs run at the same time and share each L2, which streamcluster \
     fills. x264 then misses more, its code comes from memory as well, and its prefetchers, \
     which bring far more lines than it uses, load the bus, the more since its siblings are on \
     different ones. Under spr they take turns: while x264 runs it has caches and bus nearly to \
     itself, and while streamcluster runs, all four of its threads do, which queue for the bus \
     behind each other about as long as beside x264. So spr, at less utilisation, is as good \
     for streamcluster and much better for x264, first of all by the memory path.",
        notes::TURNS,
    ],
};
