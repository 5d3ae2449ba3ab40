//! A64 in builds without its decoder: every instruction is one that nobody knows.

use crate::{Arch, DecodeError, Instruction};

/// Returns the error for code that is not decoded.
pub(crate) fn decode(_bytes: &[u8], address: u64) -> Result<Instruction, DecodeError> {
    let arch = Arch::Aarch64;
    Err(DecodeError::Invalid { arch, address })
}
