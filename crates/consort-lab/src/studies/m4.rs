//! M4: how much of the cores each program has under each mapping.
//!
//! Keys: see [`super::mapping::per_program`].

use super::mapping::measures::UTILISATION;
use super::mapping::per_program::PerProgramStudy;

/// The study.
pub(super) const M4: PerProgramStudy = PerProgramStudy {
    measure: UTILISATION,
    title: "Utilisation of the cores",
};
