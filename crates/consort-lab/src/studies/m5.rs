//! M5: streamcluster with facesim: two programs that both need much bandwidth.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::breakdown::Change;
use super::mapping::measures::{CYCLES, L2, LATENCY, Measure, TRANSACTIONS, UTILISATION};
use super::mapping::pair::PairView;
use super::mapping::plan::{MAPPINGS, Pair};
use super::mapping::{DIFFERS, SEED, SOURCE, notes, sweep};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct M5;

static INFO: StudyInfo = StudyInfo {
    id: "M5",
    title: "streamcluster with facesim under each mapping",
    source: SOURCE,
    section: "key resources: memory path and utilisation",
    original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. streamcluster with facesim, the two programs \
               with the highest bandwidth, under each mapping.",
    differs: DIFFERS,
    default_seed: SEED,
    full_seconds_hint: 25,
};

impl Study for M5 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let runs = sweep::runs(context)?;
        let view = PairView {
            runs: &runs,
            pair: PAIR,
            mappings: &MAPPINGS,
            measures: &MEASURES,
        };
        let change = Change {
            runs: &runs,
            pair: PAIR,
            from: "iso",
            to: "spr",
        };
        let mut told = vec![view.sentence()];
        told.extend(notes::stopped(&runs));
        told.extend(MECHANISM.map(str::to_owned));
        Ok(StudyOutput {
            tables: vec![view.table()?, change.table()?],
            figures: vec![
                view.speeds()?,
                view.figure(LATENCY, "Memory latency")?,
                view.figure(UTILISATION, "Utilisation of the cores")?,
                change.figure()?,
            ],
            notes: told,
            runs: runs.seeds,
        })
    }
}

const PAIR: Pair = ["facesim", "streamcluster"];

const MEASURES: [Measure; 5] = [CYCLES, L2, LATENCY, TRANSACTIONS, UTILISATION];

const MECHANISM: [&str; 2] = [
    "Both programs need the bus, and together they load it in every mapping. Where their data \
     mixes in each L2 (int) both miss a little more and wait longer than where each has an L2 \
     (iso). Under spr they take turns, so that facesim's latency is the shortest, but the \
     four threads of streamcluster then run together and queue for the bus behind each other. \
     The source proposes to spread heavy programs over time; here that trades one program's \
     queueing for its sibling's, and turns with strangers cost utilisation. os is slowest of \
     all for streamcluster, by switches and refills.",
    notes::TURNS,
];
