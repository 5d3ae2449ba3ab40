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
        full_seconds_hint: 25,
    },
    measure: L1D,
    title: "L1D misses per 1000 instructions",
    mechanism: &[
        "Mappings hardly move the misses of the L1D per instruction: a core runs one thread at a \
     time, and a stranger that takes turns on it costs a refill for each turn and no more \
     misses in between. Refills after switches are counted as time, not as misses. What \
     differences there are stem from the phases that a run happens to cover.",
    ],
};
