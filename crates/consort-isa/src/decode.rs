//! Decoding of one instruction, whatever the instruction set.

use crate::instruction::Step;
use crate::{Arch, Code, DecodeError, Instruction, a64, x86};

/// Decodes the instruction at the start of `bytes`, which lies at `address`.
///
/// # Errors
///
/// [`DecodeError`] if the bytes are too few or not an instruction that a user
/// program may execute.
pub fn decode(arch: Arch, bytes: &[u8], address: u64) -> Result<Instruction, DecodeError> {
    match arch {
        Arch::X86_64 | Arch::X86_32 => x86::decode(arch, bytes, address),
        Arch::Aarch64 => a64::decode(bytes, address),
    }
}

/// Steps over instructions at any offset of the same code.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, on the stack, and many are made"
)]
pub(crate) enum Steps<'a> {
    X86(x86::Steps<'a>),
    A64(Code<'a>),
}

impl<'a> Steps<'a> {
    /// Steps over the code from `address` on; none if it is not in the code.
    pub(crate) fn from(code: &Code<'a>, address: u64) -> Option<Self> {
        let bytes = code.from(address)?;
        Some(match code.arch {
            Arch::X86_64 | Arch::X86_32 => Self::X86(x86::Steps::new(code.arch, bytes, address)),
            Arch::Aarch64 => Self::A64(Code {
                base: address,
                bytes,
                ..*code
            }),
        })
    }

    /// The step over the instruction at an offset, bytes, if there is one.
    pub(crate) fn at(&mut self, offset: usize) -> Option<Step> {
        match self {
            Self::X86(steps) => steps.at(offset),
            Self::A64(code) => {
                let address = code.base + offset as u64;
                let target = a64::decode(code.from(address)?, address)
                    .ok()?
                    .flow
                    .target();
                Some(Step { len: 4, target })
            }
        }
    }
}
