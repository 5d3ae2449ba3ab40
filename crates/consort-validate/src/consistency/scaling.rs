//! Scaling of those PARSEC programs whose serial share was taken from it.

use super::NAME;
use crate::check::ValidationCheck;
use crate::error::ValidateError;
use crate::group::GroupInputs;
use crate::independent::parsec::{BY_MEMORY, scaling_checks};

pub(super) fn checks(inputs: &GroupInputs<'_>) -> Result<Vec<ValidationCheck>, ValidateError> {
    scaling_checks(inputs, NAME, |name| !BY_MEMORY.contains(&name))
}
