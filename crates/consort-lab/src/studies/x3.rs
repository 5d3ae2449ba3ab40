//! X3: which conclusions hold when what the descriptions say is 30 percent off.
//!
//! Keys. Table `headlines`: rows are the conclusions, for example `workover-throughput`; columns
//! `ratio`, `verdict`, `parameters`, `hold`, `fail`, `joint_percent`, `joint_low_percent`,
//! `joint_high_percent`, `joint_samples`, `joint_p5`, `joint_median`, `joint_p95`. A table and a
//! figure per conclusion, of its key: rows are parameters, for example `machine.llc.size_kib`,
//! `programs.*.data_mpki`, `quantum`; columns `swing`, `low`, `high`, `low_verdict`,
//! `high_verdict`, `low_factor`, `high_factor`.

use super::sensitivity;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::Context;

/// Runs the study.
pub(super) fn run(context: &Context<'_>, file: &StudyFile) -> Result<StudyOutput, StudyError> {
    sensitivity::run(context, file)
}
