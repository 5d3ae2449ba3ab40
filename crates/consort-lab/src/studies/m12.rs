//! M12: bodytrack with streamcluster: much input and output beside much bandwidth.
//!
//! Keys: see [`super::mapping::pair`] and [`super::mapping::breakdown`].

use super::mapping::breakdown::Change;
use super::mapping::measures::{CYCLES, L1D, L2, LATENCY, Measure, TRANSACTIONS, UTILISATION};
use super::mapping::pair::PairView;
use super::mapping::plan::{MAPPINGS, Pair};
use super::mapping::{DIFFERS, SEED, SOURCE, notes, sweep};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct M12;

static INFO: StudyInfo = StudyInfo {
    id: "M12",
    title: "bodytrack with streamcluster under each mapping",
    source: SOURCE,
    section: "performance analysis: guidelines",
    original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. bodytrack with streamcluster, a program with \
               much input and output beside one with much bandwidth, under each mapping.",
    differs: DIFFERS,
    default_seed: SEED,
    full_seconds_hint: 25,
};

impl Study for M12 {
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
            to: "int",
        };
        let mut told = vec![view.sentence()];
        told.extend(notes::stopped(&runs));
        told.extend(MECHANISM.map(str::to_owned));
        Ok(StudyOutput {
            tables: vec![view.table()?, change.table()?],
            figures: vec![
                view.speeds()?,
                view.figure(UTILISATION, "Utilisation of the cores")?,
                view.figure(LATENCY, "Memory latency")?,
                change.figure()?,
            ],
            notes: told,
            runs: runs.seeds,
        })
    }
}

const PAIR: Pair = ["streamcluster", "bodytrack"];

const MEASURES: [Measure; 6] = [CYCLES, L1D, L2, LATENCY, TRANSACTIONS, UTILISATION];

const MECHANISM: [&str; 2] = [
    "Both programs sleep and wake often, and os moves what wakes to whatever core is idle: \
     refills take much of the time of both, and bodytrack, held, has less of the cores and is \
     faster all the same. Between iso and int the L2 decides for bodytrack, which misses more \
     beside streamcluster; streamcluster gains a little by it. Under spr streamcluster's four \
     threads run together and queue for the bus behind each other.",
    notes::TURNS,
];
