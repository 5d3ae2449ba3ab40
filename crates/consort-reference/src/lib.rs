//! The reference: simulated cores that execute operations cycle by cycle.
//!
//! It reads the same machine files as the fast engine and runs streams of operations on a
//! part of a chip: one core with its SMT threads, or a few cores with what they share. It
//! says how wrong the fast engine is, and where: every thread's cycles are divided by cause.
//!
//! ```
//! use consort_core::PuId;
//! use consort_ops::{Op, OpKind, Register};
//! use consort_reference::{Reference, RunLength, SlotCause, TracePlacement};
//! use consort_sim::{chip::Chip, machine::presets};
//!
//! // A chain of additions, each of which needs the result of the one before.
//! let mut op = Op::new(OpKind::Integer, 0x1000);
//! op.sources[0] = Some(Register::general(1));
//! op.targets[0] = Some(Register::general(1));
//! let program = vec![op];
//!
//! let chip = Chip::new(&presets::find("epyc-7763")?, None)?;
//! let thread = |pu, space| TracePlacement { pu: PuId(pu), space, program: &program };
//! let siblings = [thread(0, 0), thread(1, 1)];
//! let length = RunLength { warm_up: 1_000, measured: 10_000 };
//! let outcome = Reference::new(&chip, &siblings, 1)?.run(length)?;
//! assert!((outcome.threads[0].ipc() - 1.0).abs() < 0.01);
//! assert!(outcome.threads[0].stack.cycles(SlotCause::Memory) < 100.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is modelled: fetch by block and line with a branch predictor, a target buffer and a
//! return stack, a fetch policy, a cache of decoded operations; renaming with register
//! files; dispatch by width or in groups; issue queues and ports; load and store queues with
//! forwarding; a reorder buffer or group table; every buffer private, halved, partitioned or
//! shared; caches with sets, replacement and miss queues; stream prefetchers; a data TLB;
//! an interconnect; memory with channels, banks and rows; in-order cores.
//!
//! What is not: operations of a wrong path (fetch stands still until the branch is resolved, while
//! its turns of fetch and its dispatch slots are lost as if it continued); coherence between
//! caches; predictions of memory dependences, which are right always; translation of code; refresh
//! and power states of memory; banks of caches.

pub use crate::core::buffers::Buffer;
pub use crate::placement::ReferenceError;
pub use outcome::{MemoryRequests, ReferenceOutcome, ReferenceStack, SlotCause, ThreadOutcome};
pub use placement::{OpSource, TracePlacement};
pub use reference::{Reference, RunLength};

mod core;
mod memory;
mod outcome;
mod placement;
mod reference;
mod time;
