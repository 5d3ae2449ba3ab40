//! W5: SciMark on Bulldozer, every thread going through the kernels in an order of its own.
//!
//! Cases `suite` and `fft+sparse-matmult`; rows and columns as in [`super::occupancy`].

use super::occupancy::{self, Case, Load};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct W5;

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

static INFO: StudyInfo = StudyInfo {
    id: "W5",
    title: "SciMark 2.0 with changing kernels on Bulldozer",
    source: occupancy::SOURCE,
    section: "SciMark 2.0 on Bulldozer (section 5; the number is not checked)",
    original: "One NUMA node of an Opteron 6282 SE. One Java process with as many threads as PUs, \
               each running the five kernels of SciMark 2.0 in random order, beside the runtime's own \
               threads; then the kernels FFT and sparse matrix product alone. Time until all threads \
               are done under the default scheduler and under WorkOver; runs and their spread.",
    differs: occupancy::DIFFERS_KERNELS,
    default_seed: 5,
    full_seconds_hint: 6,
};

impl Study for W5 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        occupancy::run(CASES, context)
    }
}
