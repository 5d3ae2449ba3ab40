//! W3: integer beside floating-point programs on Bulldozer.
//!
//! Cases `hmmer+povray` and `mcf+sphinx3`; rows and columns as in [`super::occupancy`].

use super::occupancy::{self, Case, Load};
use crate::context::Context;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};

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

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    occupancy::run(CASES, context)
}
