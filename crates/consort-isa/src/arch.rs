//! The instruction sets that can be decoded, and a piece of code in one of them.

use serde::Serialize;

/// An instruction set, as the kernel reports it for a sampled thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arch {
    /// x86, 64-bit mode.
    X86_64,
    /// x86, 32-bit mode, as of a 32-bit program on a 64-bit kernel.
    X86_32,
    /// 64-bit Arm (A64); decoded with the feature `a64` alone.
    Aarch64,
}

/// Code bytes as they lie in the memory of the sampled program.
#[derive(Clone, Copy, Debug)]
pub struct CodeBytes<'a> {
    /// The instruction set that the bytes are to be read as.
    pub arch: Arch,
    /// The bytes. They need not start or end on an instruction boundary.
    pub bytes: &'a [u8],
    /// The address of the first byte.
    pub base: u64,
}

impl<'a> CodeBytes<'a> {
    /// The bytes from `address` on, or `None` if it lies outside.
    pub(crate) fn bytes_from(&self, address: u64) -> Option<&'a [u8]> {
        let offset = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.bytes.get(offset..).filter(|rest| !rest.is_empty())
    }
}
