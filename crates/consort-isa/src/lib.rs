//! Estimates of what a thread spends its time on, from sampled instruction addresses.
//!
//! On a host without hardware counters a timer still shows the address at which a thread is. This
//! crate decodes the code around each sampled address and turns many samples into an instruction
//! mix by time, an estimated four-part cycle stack and a code footprint. It is pure: bytes and
//! addresses in, numbers out; no I/O, no clock, no panic on any bytes.
//!
//! ```
//! use std::sync::Arc;
//! use consort_isa::{Arch, BlockFacts, CodeBytes, Estimator};
//!
//! // 1: mov rdi,[rdi]; dec rsi; jne 1b: a walk along a linked list.
//! let bytes = [0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf8];
//! let code = CodeBytes { arch: Arch::X86_64, bytes: &bytes, base: 0x1000 };
//! let block = Arc::new(BlockFacts::build(code, 0x1003, &[0x1000])?);
//! let mut estimator = Estimator::new();
//! for _ in 0..100 {
//!     estimator.add(&block, 0x1003, 1.0);
//! }
//! let estimate = estimator.finish().expect("samples were added");
//! assert!(estimate.memory_stall_share > 0.9);
//! # Ok::<(), consort_isa::BlockError>(())
//! ```
//!
//! The method has three steps:
//!
//! 1. **Blocks** ([`BlockFacts`]): the straight-line run around an address, up to the branch that
//!    ends it, and for each instruction a [`Suspicion`]: the cause for which a pile of samples there
//!    would be waiting.
//! 2. **Mix**: every instruction of a block runs equally often, so the time of a block is spread
//!    evenly over its instructions. This removes the skid of sampling. The mix by sampled address
//!    alone is returned as well.
//! 3. **Stack**: instructions retire in order, so a timer sample names the oldest instruction that
//!    had not retired, which stands behind the one that was waited for. Instructions without suspicion
//!    calibrate the clock: they retire at most [`RETIRE_WIDTH`] per cycle, so a pile next to them is
//!    worth at least a certain number of cycles per execution. Cycles distinguish a first-level hit
//!    ([`L1_HIT_CYCLES`]) from a miss. If the piles of a block cannot be calibrated, the result is the
//!    middle of the possible range, and [`Estimate::memory_bounds`] is that range.
//!
//! If samples include registers ([`BlockFacts::memory_access_at`]) and the processor is known
//! ([`SampledProcessor`]), two more facts are used. One is how much memory the code works on, so
//! that data that fit the first-level cache are not taken for a stall. The other is how fast loops
//! go through memory ([`LoopRound`]), so that streams limited by bandwidth are found, whose samples
//! stand all over the loop.
//!
//! Limits, which no number of samples removes:
//!
//! - Without registers, a loop so short that it may retire in one group shows all samples on one
//!   instruction whether it waits or not. A walk along pointers is then charged to memory even if
//!   it hits; any other such loop is charged half.
//! - Without registers, many overlapping accesses that saturate the memory path leave samples all
//!   over the block: streams are underestimated, even beyond the upper bound.
//! - Waits for accesses that overlap with each other or with other work are counted whole.
//! - A full store buffer shows on instructions that wait for nothing.
//! - A refilled front end shows up all over the code behind a mispredicted branch, not only at its
//!   target, and a load that was compared before the branch may stand at a target.
//!
//! docs/research/validation.md has the errors of the estimates, by processor;
//! `tests/measured_samples.rs` has some measured samples without registers.

#[cfg(feature = "a64")]
mod a64;
/// Stands in for the decoder of A64 in builds without it.
#[cfg(not(feature = "a64"))]
mod a64 {
    use crate::{Arch, DecodeError, Instruction};

    pub(crate) fn decode(_bytes: &[u8], _address: u64) -> Result<Instruction, DecodeError> {
        let arch = Arch::Aarch64;
        Err(DecodeError::LeftOut { arch })
    }
}
mod arch;
mod block;
mod decode;
mod estimate;
mod instruction;
mod operand;
mod operations;
mod x86;

pub use arch::{Arch, CodeBytes, L1_HIT_CYCLES, RETIRE_WIDTH, SampledProcessor};
pub use block::{BlockEntry, BlockError, BlockFacts, LoopRound, Stride, Suspicion};
pub use decode::decode;
pub use estimate::{Estimate, EstimatedStack, Estimator, Footprint, SamplePoint, ShareBounds};
pub use instruction::{
    ClassMix, DecodeError, FlowKind, Instruction, InstructionClass, MemoryUse, UnitLatency,
};
pub use operand::{
    ArchRegister, GENERAL_REGISTERS, LinearUpdate, MemoryAccess, Operand, RegisterSet,
    RegisterValues,
};
pub use operations::operations;
