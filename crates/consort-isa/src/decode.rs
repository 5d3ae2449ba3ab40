//! Decoding of one instruction, whatever the instruction set.

use crate::instruction::InstructionStep;
use crate::{Arch, CodeBytes, DecodeError, Instruction, a64, x86};

/// Decodes the instruction at the start of `bytes`, which lies at `address`.
///
/// # Errors
///
/// [`DecodeError`] if the bytes are too few or not an instruction that a user program may execute.
pub fn decode(arch: Arch, bytes: &[u8], address: u64) -> Result<Instruction, DecodeError> {
    match arch {
        Arch::X86_64 | Arch::X86_32 => x86::decode(arch, bytes, address),
        Arch::Aarch64 => a64::decode(bytes, address),
    }
}

/// Lengths and branch targets of instructions at any offset of the same code.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one at a time, on the stack, and many are made"
)]
pub(crate) enum InstructionSteps<'a> {
    X86(x86::X86Steps<'a>),
    A64(CodeBytes<'a>),
}

impl<'a> InstructionSteps<'a> {
    /// `None` if `address` is not in the code.
    pub(crate) fn from_address(code: &CodeBytes<'a>, address: u64) -> Option<Self> {
        let bytes = code.bytes_from(address)?;
        Some(match code.arch {
            Arch::X86_64 | Arch::X86_32 => Self::X86(x86::X86Steps::new(code.arch, bytes, address)),
            Arch::Aarch64 => Self::A64(CodeBytes {
                base: address,
                bytes,
                ..*code
            }),
        })
    }

    /// The instruction at an offset in bytes; `None` if there is none.
    pub(crate) fn step_at(&mut self, offset: usize) -> Option<InstructionStep> {
        match self {
            Self::X86(steps) => steps.step_at(offset),
            Self::A64(code) => {
                let address = code.base + offset as u64;
                let target = a64::decode(code.bytes_from(address)?, address)
                    .ok()?
                    .flow
                    .target();
                Some(InstructionStep { len: 4, target })
            }
        }
    }
}
