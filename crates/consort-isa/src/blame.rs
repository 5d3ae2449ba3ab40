//! Meaning of a single sample, taken alone.
//!
//! Purpose: explanations ("this thread was behind a load in this loop"). The
//! shares of [`crate::Estimate`] come from many samples together; a single one
//! only names a suspect.

use serde::Serialize;

use crate::{BlockFacts, Class, Instruction, Suspicion, UnitUse};

/// The part of the cycle stack that a sample points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Ordinary progress.
    Base,
    /// Waiting for an execution unit.
    Unit,
    /// Waiting for memory.
    Memory,
    /// Waiting for instructions.
    FrontEnd,
}

/// Strength of what a single sample says about its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Two causes are about equally likely.
    Low,
    /// The cause is the likelier one; a first-level hit, or a short wait for a
    /// pipelined unit, looks the same.
    Medium,
    /// Little else can keep an instruction waiting here.
    High,
}

/// The verdict on one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Blame {
    /// The class of the instruction that is charged: the one at the address.
    pub class: Class,
    /// Probable cause of its wait.
    pub cause: Cause,
    /// Trust that `cause` deserves.
    pub certainty: Certainty,
}

/// Judges one sample; `None` if the block has no instruction at `address`.
pub fn blame(block: &BlockFacts, address: u64) -> Option<Blame> {
    let index = block.index_of(address)?;
    let at = &block.instructions()[index];
    let (cause, certainty) = match block.suspicions()[index] {
        Suspicion::None => (Cause::Base, Certainty::Medium),
        Suspicion::Memory { chained: true } => (Cause::Memory, Certainty::High),
        Suspicion::Memory { chained: false } => (Cause::Memory, Certainty::Medium),
        Suspicion::MemoryOrUnit | Suspicion::StoreBuffer => (Cause::Memory, Certainty::Low),
        Suspicion::Unit => (Cause::Unit, unit_certainty(block, index, at)),
        Suspicion::FrontEnd => (Cause::FrontEnd, Certainty::Low),
    };
    Some(Blame {
        class: at.class,
        cause,
        certainty,
    })
}

fn unit_certainty(block: &BlockFacts, index: usize, at: &Instruction) -> Certainty {
    let before = index
        .checked_sub(1)
        .map(|before| block.instructions()[before].unit);
    if at.unit == UnitUse::Long || before == Some(UnitUse::Long) {
        Certainty::High
    } else {
        Certainty::Medium
    }
}
