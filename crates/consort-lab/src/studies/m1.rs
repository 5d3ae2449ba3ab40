//! M1: misses of the L1 data cache of each program under each mapping.
//!
//! Keys: see [`super::mapping::per_program`].

use super::mapping::measures::L1D;
use super::mapping::per_program::PerProgramStudy;
use super::mapping::{DIFFERS, SEED, SOURCE};
use crate::study::StudyInfo;

/// The study.
pub(super) const M1: PerProgramStudy = PerProgramStudy {
    info: StudyInfo {
        id: "M1",
        title: "L1D misses of each program under each mapping",
        source: SOURCE,
        section: "key resources: L1 data cache",
        original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. L1D misses of each program under each mapping.",
        differs: DIFFERS,
        default_seed: SEED,
        full_seconds_hint: 130,
    },
    measure: L1D,
    title: "L1D misses per 1000 instructions",
    mechanism: &[
        "What a turn displaces of a core's L1D the thread that comes back misses again. That shows \
     where strangers take turns (os and spr), most for a program that misses little by itself \
     beside one that sleeps and wakes often: blackscholes beside streamcluster. streamcluster \
     misses most under iso and int, where its own threads take turns at its barriers. Between \
     turns the mapping hardly matters: a core runs one thread at a time.",
    ],
};
