//! X1: the umbrella policy against each source's own policy on each source's own ground.
//!
//! Keys: see [`super::umbrella`].

use super::umbrella;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::Context;

/// Runs the study.
pub(super) fn run(context: &Context<'_>, file: &StudyFile) -> Result<StudyOutput, StudyError> {
    umbrella::run(context, file)
}
