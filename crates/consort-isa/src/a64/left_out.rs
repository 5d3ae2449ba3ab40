//! A64 in builds without its decoder.

use crate::{Arch, DecodeError, Instruction};

/// Returns the error that says so.
pub(crate) fn decode(_bytes: &[u8], _address: u64) -> Result<Instruction, DecodeError> {
    let arch = Arch::Aarch64;
    Err(DecodeError::LeftOut { arch })
}
