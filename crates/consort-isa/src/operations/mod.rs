//! Micro-operations of one x86-64 instruction.
//!
//! Cracking follows what cores since about 2006 do (Fog, The microarchitecture of Intel, AMD and
//! VIA CPUs; Intel, Optimization Reference Manual, 2.1): an operand in memory is a load of its
//! own, a result in memory a store of its own. Three things of the front end are taken as done:
//!
//! - pushes, pops, calls and returns move the stack pointer without an operation, as a stack
//!   pointer tracker does, so that nothing waits for them;
//! - a register that is cleared by an operation on itself depends on nothing;
//! - writing 8 or 16 bits of a general register merges, so that it reads the rest.
//!
//! Registers of x87 are taken by their place in the stack as the instruction names it: pushes
//! and pops do not rename them. Only x86-64 is cracked.

mod crack;
mod kind;
mod names;

use consort_ops::Op;

use crate::{Arch, DecodeError, x86};

/// Operations of the x86-64 instruction at the start of `bytes`, which lies at `address`.
///
/// What only execution tells is left open: addresses of data are 0, no branch is taken and no
/// branch has a target. The first operation is marked as such, loads come before what computes,
/// stores behind it, a branch comes last. Every instruction has at least one operation.
///
/// # Errors
///
/// [`DecodeError`] if the bytes are too few or not an instruction that a user program may
/// execute.
pub fn operations(bytes: &[u8], address: u64) -> Result<Vec<Op>, DecodeError> {
    x86::with_info(Arch::X86_64, bytes, address, |raw, info| {
        crack::crack(raw, info, address)
    })
}

#[cfg(test)]
mod tests;
