//! M1: misses of the L1 data cache of each program under each mapping.
//!
//! Keys: see [`super::mapping::per_program`].

use super::mapping::measures::L1D;
use super::mapping::per_program::PerProgram;
use super::mapping::{DIFFERS, SEED, SOURCE, notes, sweep};
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct M1;

static INFO: StudyInfo = StudyInfo {
    id: "M1",
    title: "L1D misses of each program under each mapping",
    source: SOURCE,
    section: "key resources: L1 data cache",
    original: "Core 2 Quad Q9550, nine programs of PARSEC with four threads each, in pairs, under \
               the mappings OS, iso, int and spr. L1D misses of each program under each mapping.",
    differs: DIFFERS,
    default_seed: SEED,
    full_seconds_hint: 25,
};

impl Study for M1 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let runs = sweep::runs(context)?;
        let view = PerProgram {
            runs: &runs,
            measure: L1D,
        };
        let mut told = vec![view.sentence()];
        told.extend(notes::stopped(&runs));
        told.extend(MECHANISM.map(str::to_owned));
        Ok(StudyOutput {
            tables: vec![
                view.table("L1D misses per 1000 instructions, over co-runners")?,
                view.variation()?,
            ],
            figures: vec![view.figure("L1D misses per 1000 instructions")?],
            notes: told,
            runs: runs.seeds,
        })
    }
}

const MECHANISM: [&str; 1] = [
    "Mappings hardly move the misses of the L1D per instruction: a core runs one thread at a \
     time, and a stranger that takes turns on it costs a refill for each turn and no more \
     misses in between. Refills after switches are counted as time, not as misses. What \
     differences there are stem from the phases that a run happens to cover.",
];
