//! Estimates of what a thread spends its time on, from sampled instruction addresses.
//!
//! Purpose: on a host without hardware counters a timer still says *where* a
//! thread is. This crate decodes the code around each sampled address and turns
//! many samples into an instruction mix by time, an estimated four-part cycle
//! stack and a code footprint. It is pure: bytes and addresses
//! in, numbers out; no I/O, no clock, no panic on any bytes.
//!
//! Usage:
//!
//! ```
//! use std::sync::Arc;
//! use consort_isa::{Arch, BlockFacts, Code, Estimator};
//!
//! // 1: mov rdi,[rdi]; dec rsi; jne 1b: a walk along a linked list.
//! let bytes = [0x48, 0x8b, 0x3f, 0x48, 0xff, 0xce, 0x75, 0xf8];
//! let code = Code { arch: Arch::X86_64, bytes: &bytes, base: 0x1000 };
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
//! The method, in three steps:
//!
//! 1. **Blocks** ([`BlockFacts`]): the straight-line run around an address, up to
//!    the branch that ends it, and per instruction a [`Suspicion`]: what a pile
//!    of samples there would be waiting for.
//! 2. **Mix**: every instruction of a block runs equally often, so the time of a
//!    block is spread evenly over its instructions. This removes the skid of
//!    sampling. The mix by sampled address alone is given beside it.
//! 3. **Stack**: instructions retire in order, so a timer sample names the oldest
//!    instruction that had not retired, which stands behind the one that was
//!    waited for. Instructions without suspicion calibrate the clock: they
//!    retire at most [`RETIRE_WIDTH`] per cycle, so a pile beside them is worth
//!    at least so many cycles per execution, and cycles are what tells a
//!    first-level hit ([`L1_HIT_CYCLES`]) from a miss. Where the piles of one
//!    block cannot be calibrated the answer is the middle of what is possible,
//!    and [`Estimate::memory_bounds`] says how far that may be off.
//!
//! Where samples bring registers along ([`BlockFacts::memory_access_at`]) and the
//! processor is known ([`SampledProcessor`]), two things more are told: how much memory the
//! code works on, so that what fits the first-level cache is not taken for a
//! stall, and how fast loops go through memory ([`LoopRound`]), so that streams
//! limited by bandwidth are found, whose samples stand all over the loop.
//!
//! Pitfalls, all of them errors of principle that no number of samples cures:
//!
//! - Without registers, a loop so short that it may retire in one group shows
//!   all samples on one instruction whether it waits or not. A walk along
//!   pointers is then charged to memory even if it hits; any other such loop gets
//!   half.
//! - Without registers, many overlapping accesses that saturate the memory path
//!   leave samples all over the block: streams are underestimated, even beyond
//!   the upper bound.
//! - Waits for accesses that overlap with each other or with other work are
//!   counted whole.
//! - A full store buffer shows on instructions that wait for nothing.
//! - A refilled front end shows up all over the code behind a mispredicted
//!   branch, not only at its target, and at a target may stand a load that was
//!   compared before the branch.
//!
//! How far the estimates are from the truth, on which processors, is recorded in
//! the project's `docs/measurements/classification.md`; `tests/measured_samples.rs`
//! holds some measured samples without registers.

#[cfg(feature = "a64")]
mod a64;
#[cfg(not(feature = "a64"))]
#[path = "a64/left_out.rs"]
mod a64;
mod arch;
mod block;
mod class;
mod decode;
mod estimate;
mod instruction;
mod operand;
mod operations;
mod registers;
mod sampled_processor;
mod x86;

pub use arch::{Arch, CodeBytes};
pub use block::{BlockEntry, BlockError, BlockFacts, LoopRound, Stride, Suspicion};
pub use class::{ClassMix, InstructionClass};
pub use decode::decode;
pub use estimate::{Estimate, EstimatedStack, Estimator, Footprint, SamplePoint, ShareBounds};
pub use instruction::{DecodeError, FlowKind, Instruction, MemoryUse, UnitLatency};
pub use operand::{GENERAL_REGISTERS, LinearUpdate, MemoryAccess, Operand, RegisterValues};
pub use operations::operations;
pub use registers::{ArchRegister, RegisterSet};
pub use sampled_processor::{L1_HIT_CYCLES, RETIRE_WIDTH, SampledProcessor};
