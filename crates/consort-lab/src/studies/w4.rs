//! W4: integer beside floating-point programs on POWER7, with two and four threads per core.
//!
//! Cases `smt2/h264ref+povray`, `smt2/gobmk+bwaves`, and the same with `smt4`; rows and columns as
//! in [`super::occupancy`].

use super::occupancy::{self, Case, Load};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct W4;

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

static INFO: StudyInfo = StudyInfo {
    id: "W4",
    title: "Integer and floating-point programs on POWER7, SMT2 and SMT4",
    source: occupancy::SOURCE,
    section: "SPEC CPU2006 on POWER7 (section 5; the number is not checked)",
    original: "One POWER7 of 8 cores. Eight copies of an integer program beside eight of a \
               floating-point one in SMT2, sixteen beside sixteen in SMT4, h264ref with povray and \
               gobmk with bwaves, under the default scheduler, WorkOver, and WorkOver inverted. Whole \
               programs, all started together, each run once: wall time until all have finished. Ten \
               runs; speedup and L2 misses.",
    differs: occupancy::DIFFERS_PAIRS,
    default_seed: 4,
    full_seconds_hint: 1100,
};

impl Study for W4 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        occupancy::run(CASES, context)
    }
}
