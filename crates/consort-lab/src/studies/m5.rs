//! M5: streamcluster with facesim: two programs that both need much bandwidth.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::measures::{CYCLES, L2, LATENCY, TRANSACTIONS, UTILISATION};
use super::mapping::of_pair::PairStudy;
use super::mapping::plan::MAPPINGS;
use super::mapping::{DIFFERS, SEED, SOURCE, notes};
use crate::study::StudyInfo;

/// The study.
pub(super) const M5: PairStudy = PairStudy {
    info: StudyInfo {
        id: "M5",
        title: "streamcluster with facesim under each mapping",
        source: SOURCE,
        section: "key resources: memory path and utilisation",
        original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. streamcluster with facesim, the two programs \
               with the highest bandwidth, under each mapping.",
        differs: DIFFERS,
        default_seed: SEED,
        full_seconds_hint: 130,
    },
    pair: ["facesim", "streamcluster"],
    mappings: &MAPPINGS,
    measures: &[CYCLES, L2, LATENCY, TRANSACTIONS, UTILISATION],
    headline: &[LATENCY, UTILISATION],
    change: Some(["iso", "spr"]),
    figures: &[
        (LATENCY, "Memory latency"),
        (UTILISATION, "Utilisation of the cores"),
    ],
    mechanism: &[
        "Both programs need the bus, and together they load it in every mapping. Where their data \
     mixes in each L2 and siblings are on different prefetchers (int) both miss a little more, \
     bring more lines in vain and wait longer than where each has an L2 (iso). Under spr they \
     take turns, so that facesim's latency is the shortest, but the four threads of \
     streamcluster then run together and queue for the bus behind each other. The source \
     proposes to spread heavy programs over time; here that trades one program's queueing for \
     its sibling's, and turns with strangers cost utilisation. os is slowest of all for \
     streamcluster, by utilisation and refills, and fastest for facesim, which has the cores \
     that streamcluster's sleeping threads leave.",
        notes::TURNS,
    ],
};
