//! Properties of the processor that the estimate needs.

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

/// The most instructions that retire in one cycle. 8 is the width of AMD Zen ("Software
/// Optimization Guide for AMD Family 17h Models 30h", section 2.9: eight macro ops per cycle) and
/// of Arm Neoverse N1 and V1 (their software optimisation guides). If it is too large, stalls look
/// shorter than they are; if too small, longer.
pub const RETIRE_WIDTH: f64 = 8.0;

/// Cycles from a load to its use when it hits the first-level cache: 4 on Arm
/// Neoverse and AMD Zen, 5 on Intel from Sunny Cove on (their optimisation
/// guides). A wait of this length says nothing about memory.
pub const L1_HIT_CYCLES: f64 = 5.0;

/// Sizes and speed of the sampled processor; `None` if not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampledProcessor {
    /// Size of a core's first-level data cache, bytes.
    pub l1_bytes: Option<u64>,
    /// Size of a core's second-level cache, bytes; that of the first level if there is no second.
    pub l2_bytes: Option<u64>,
    /// Core cycles per nanosecond while a thread runs.
    pub cycles_per_ns: Option<f64>,
}
