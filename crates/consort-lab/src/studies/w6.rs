//! W6: SciMark on POWER7, with two and four threads per core.
//!
//! Cases `smt2/suite`, `smt2/lu+monte-carlo`, and the same with `smt4`; rows and columns as in
//! [`super::occupancy`].

use super::occupancy::{self, Case, Load};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct W6;

const CASES: &[Case] = &[
    case("smt2/suite", "power7:smt=2", &occupancy::SCIMARK),
    case("smt2/lu+monte-carlo", "power7:smt=2", LU_MONTE_CARLO),
    case("smt4/suite", "power7:smt=4", &occupancy::SCIMARK),
    case("smt4/lu+monte-carlo", "power7:smt=4", LU_MONTE_CARLO),
];

const LU_MONTE_CARLO: &[&str] = &["lu", "monte-carlo"];

const fn case(key: &'static str, machine: &'static str, kernels: &'static [&'static str]) -> Case {
    let load = Load::Kernels(kernels);
    Case { key, machine, load }
}

static INFO: StudyInfo = StudyInfo {
    id: "W6",
    title: "SciMark 2.0 with changing kernels on POWER7, SMT2 and SMT4",
    source: occupancy::SOURCE,
    section: "SciMark 2.0 on POWER7 (section 5; the number is not checked)",
    original: "One POWER7 of 8 cores in SMT2 and SMT4. One Java process with as many threads as \
               PUs, each running the five kernels of SciMark 2.0 in random order, beside the \
               runtime's own threads; then the kernels LU and Monte Carlo alone. Time until all \
               threads are done under the default scheduler and under WorkOver; runs and their \
               spread.",
    differs: occupancy::DIFFERS_KERNELS,
    default_seed: 6,
    full_seconds_hint: 30,
};

impl Study for W6 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        occupancy::run(CASES, context)
    }
}
