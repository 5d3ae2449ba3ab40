//! Micro-operations of real programs: what a core executes, one at a time.
//!
//! An instruction is one or more operations: arithmetic with an operand in memory is a load and an
//! operation that waits for it, a store computes an address and hands over data. Operations carry
//! what a cycle-by-cycle engine and a profiler need and nothing of the instruction set: registers
//! are numbers, kinds are what an issue port is built for.

pub use fusion::{FusedPair, Fusion};
pub use kind::{LatencyClass, OpKind};
pub use op::{Access, Branch, BranchKind, Op, Register};

mod fusion;
mod kind;
mod op;
pub mod predictor;
pub mod trace;
