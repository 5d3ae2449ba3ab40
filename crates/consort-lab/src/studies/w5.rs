//! W5: SciMark on Bulldozer, every thread going through the kernels in an order of its own.
//!
//! Cases `suite` and `fft+sparse-matmult`; rows and columns as in [`super::occupancy`].

use super::occupancy::{self, Case, Load};
use crate::context::Context;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};

const CASES: &[Case] = &[
    Case {
        key: "suite",
        machine: "bulldozer-6282se",
        load: Load::Kernels(&occupancy::SCIMARK),
    },
    Case {
        key: "fft+sparse-matmult",
        machine: "bulldozer-6282se",
        load: Load::Kernels(&["fft", "sparse-matmult"]),
    },
];

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    occupancy::run(CASES, context)
}
