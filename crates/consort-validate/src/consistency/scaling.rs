//! Scaling of those PARSEC programs whose serial share was taken from it.

use super::NAME;
use crate::check::Check;
use crate::error::ValidateError;
use crate::group::Inputs;
use crate::independent::parsec::{BY_MEMORY, scaling_checks};

pub(super) fn checks(inputs: &Inputs<'_>) -> Result<Vec<Check>, ValidateError> {
    scaling_checks(inputs, NAME, |name| !BY_MEMORY.contains(&name))
}
