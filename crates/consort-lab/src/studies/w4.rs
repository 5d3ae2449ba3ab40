//! W4: integer beside floating-point programs on POWER7, with two and four threads per core.
//!
//! Cases `smt2/h264ref+povray`, `smt2/gobmk+bwaves`, and the same with `smt4`; rows and columns as
//! in [`super::occupancy`].

use super::occupancy::{self, Case, Load};
use crate::context::Context;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};

const CASES: &[Case] = &[
    case("smt2/h264ref+povray", "power7:smt=2", H264_POVRAY),
    case("smt2/gobmk+bwaves", "power7:smt=2", GOBMK_BWAVES),
    case("smt4/h264ref+povray", "power7:smt=4", H264_POVRAY),
    case("smt4/gobmk+bwaves", "power7:smt=4", GOBMK_BWAVES),
];

const H264_POVRAY: Load = Load::Pair {
    int: "h264ref",
    fp: "povray",
    alone_s: 60.0,
};

const GOBMK_BWAVES: Load = Load::Pair {
    int: "gobmk",
    fp: "bwaves",
    alone_s: 60.0,
};

const fn case(key: &'static str, machine: &'static str, load: Load) -> Case {
    Case { key, machine, load }
}

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    occupancy::run(CASES, context)
}
