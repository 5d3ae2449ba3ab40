//! W6: SciMark on POWER7, with two and four threads per core.
//!
//! Cases `smt2/suite`, `smt2/lu+monte-carlo`, and the same with `smt4`; rows and columns as in
//! [`super::occupancy`].

use super::occupancy::{self, Case, Load};
use crate::context::Context;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};

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

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    occupancy::run(CASES, context)
}
