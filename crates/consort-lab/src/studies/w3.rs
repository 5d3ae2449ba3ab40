//! W3: integer beside floating-point programs on Bulldozer.
//!
//! Cases `hmmer+povray` and `mcf+sphinx3`; rows and columns as in [`super::occupancy`].

use super::occupancy::{self, Case, Load};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct W3;

const CASES: &[Case] = &[
    Case {
        key: "hmmer+povray",
        machine: "bulldozer-6282se",
        load: Load::Pair {
            int: "hmmer",
            fp: "povray",
            alone_s: 300.0,
        },
    },
    Case {
        key: "mcf+sphinx3",
        machine: "bulldozer-6282se",
        load: Load::Pair {
            int: "mcf",
            fp: "sphinx3",
            alone_s: 300.0,
        },
    },
];

static INFO: StudyInfo = StudyInfo {
    id: "W3",
    title: "Four integer and four floating-point programs on Bulldozer",
    source: occupancy::SOURCE,
    section: "SPEC CPU2006 on Bulldozer (section 5; the number is not checked)",
    original: "One NUMA node of an Opteron 6282 SE: 4 modules with 2 PUs each. Four copies of an \
               integer program beside four of a floating-point one, hmmer with povray and mcf with \
               sphinx3, under the default scheduler, WorkOver, and WorkOver inverted so that like \
               goes with like and stays as it was placed. Whole programs, all started together, each \
               run once: wall time until all eight have finished, so that what is left of the longer \
               class runs without the other. Ten runs; speedup and L2 misses.",
    differs: occupancy::DIFFERS_PAIRS,
    default_seed: 3,
    full_seconds_hint: 70,
};

impl Study for W3 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        occupancy::run(CASES, context)
    }
}
