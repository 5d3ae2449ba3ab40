//! X1: the umbrella policy against each source's own policy on each source's own ground.
//!
//! Keys: see [`super::umbrella`].

use super::umbrella;
use crate::context::Context;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    umbrella::run(context)
}
