//! M1: misses of the L1 data cache of each program under each mapping.
//!
//! Keys: see [`super::mapping::per_program`].

use super::mapping::measures::L1D;
use super::mapping::per_program::PerProgramStudy;

/// The study.
pub(super) const M1: PerProgramStudy = PerProgramStudy {
    measure: L1D,
    title: "L1D misses per 1000 instructions",
};
