//! M4: how much of the cores each program has under each mapping.
//!
//! Keys: see [`super::mapping::per_program`].

use super::mapping::measures::UTILISATION;
use super::mapping::per_program::PerProgramStudy;
use super::mapping::{DIFFERS, SEED, SOURCE, notes};
use crate::study::StudyInfo;

/// The study.
pub(super) const M4: PerProgramStudy = PerProgramStudy {
    info: StudyInfo {
        id: "M4",
        title: "Processor utilisation of each program under each mapping",
        source: SOURCE,
        section: "key resources: processor utilisation",
        original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. Processor utilisation of each program under \
               each mapping.",
        differs: DIFFERS,
        default_seed: SEED,
        full_seconds_hint: 130,
    },
    measure: UTILISATION,
    title: "Utilisation of the cores",
    mechanism: &[
        "Where each program has cores to itself, which is iso and int, siblings take turns and \
     each program has about half of the cores; what is less than that is serial sections, \
     barriers and input and output, during which its cores are idle although the co-runner \
     has threads that wait. os gives such cores to the co-runner, so that most programs have \
     more of them. streamcluster has the least under os: at each barrier it sleeps, and wakes \
     behind others. iso and int have the same utilisation: which L2 a core is at decides how \
     fast it is, not whether there is something to run.",
        notes::TURNS,
    ],
};
