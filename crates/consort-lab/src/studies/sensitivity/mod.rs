//! X3: which conclusions hold when what the descriptions say is 30 percent off.
//!
//! Keys. Table `headlines`: rows are the conclusions, for example `workover-throughput`; columns
//! `ratio`, `verdict`, `parameters`, `hold`, `fail`, `joint_percent`, `joint_low_percent`,
//! `joint_high_percent`, `joint_samples`, `joint_p5`, `joint_median`, `joint_p95`. A table and a
//! figure per conclusion, of its key: rows are parameters, for example `machine.llc.size_kib`,
//! `programs.*.data_mpki`, `quantum`; columns `swing`, `low`, `high`, `low_verdict`,
//! `high_verdict`, `low_factor`, `high_factor`.
//!
//! A conclusion ([`mod@headlines`]) is a ratio of two policies' runs that is above 1. Every number of
//! the machine's and the programs' descriptions ([`parameters`]) and the policies' quantum are
//! varied by 30 percent to both sides, one at a time and all at once by a Latin hypercube
//! ([`variation`]), and both policies run again ([`trial`]) with the seeds that they had before.
//!
//! Pitfalls: a program's work is measured anew on every varied machine, so that it takes the same
//! time alone on each; a parameter that cannot go so far goes as far as it can; constants of the
//! models that are in no description, and options of the policies, are not varied. `symbiotic`
//! keeps the model that was trained on the machine as it is described.

mod figures;
mod headlines;
mod latin;
mod notes;
mod parameters;
mod scale;
mod subject;
mod tables;
mod tested;
mod trial;
mod trials;
mod variation;
mod wilson;

use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::ExperimentContext;
use headlines::headlines;
pub use latin::hypercube;
use trials::{SensitivityExtent, put_to_the_test};

/// Samples with everything varied.
const SAMPLES: [usize; 2] = [10, 60];

/// Puts every conclusion to the test.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let scale = context.by_scale(0, 1);
    let effort = SensitivityExtent {
        samples: SAMPLES[scale],
        scale,
    };
    let headlines = headlines()?;
    let all = put_to_the_test(&headlines, effort, context)?;
    let mut tables = vec![tables::headline(&all)?, tables::conclusions(file, &all)?];
    let mut figures = Vec::new();
    for tested in &all {
        tables.push(tables::swings(tested)?);
        figures.push(figures::tornado(tested)?);
    }
    Ok(StudyOutput {
        tables,
        figures,
        notes: notes::notes(&all),
        runs: headlines[0].runs[scale],
    })
}
