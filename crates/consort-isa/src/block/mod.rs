//! The straight-line run of code around a sampled address.
//!
//! Purpose: decoded once, kept by the caller under its start address, and looked
//! up for every further sample ([`BlockFacts::index_of`]).
//!
//! Pitfalls: a block that is longer than the window is cut, and samples in
//! different parts of it then lie in different, overlapping blocks; indirect
//! branches into the middle of a block are not seen.

mod boundaries;
mod build;
mod rounds;
mod suspicion;

use crate::operand::KnownValues;
use crate::{Instruction, InstructionClass, MemoryAccess, Operand, RegisterSet, RegisterValues};

pub use rounds::{LoopRound, Stride};
pub use suspicion::Suspicion;

/// Reason why there is no block around an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The address is not inside the bytes.
    #[error("address {address:#x} lies outside the code at {base:#x} ({len} bytes)")]
    Outside {
        /// The address asked for.
        address: u64,
        /// Start of the code.
        base: u64,
        /// Number of bytes.
        len: usize,
    },
    /// There is no instruction at the address.
    #[error(transparent)]
    Decode(#[from] crate::DecodeError),
}

/// Way in which control comes to the first instruction of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEntry {
    /// From a conditional branch that was not taken; perhaps from others too.
    Fallthrough,
    /// Back from a call.
    AfterCall,
    /// Only by branches from elsewhere.
    Target,
    /// From the instruction before it, and as the target of a branch.
    Joined,
    /// Not known: the window ends here.
    Unknown,
}

/// A basic block with everything that its samples will be charged by.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockFacts {
    instructions: Box<[Instruction]>,
    suspicions: Box<[Suspicion]>,
    class_counts: [u16; 7],
    entry: BlockEntry,
    loops: bool,
    /// Instructions before it in each round of a loop that it ends.
    lead: Box<[Instruction]>,
    rounds: Option<LoopRound>,
    /// Of a comparison with memory before a branch that leads here.
    fused: Option<Operand>,
}

impl BlockFacts {
    /// The instructions in order of address; never empty.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// Causes that a pile of samples on each instruction would be waiting for.
    pub fn suspicions(&self) -> &[Suspicion] {
        &self.suspicions
    }

    /// Number of instructions of each class, as in [`InstructionClass::ALL`].
    pub const fn class_counts(&self) -> [u16; 7] {
        self.class_counts
    }

    /// Way in which control comes in.
    pub const fn entry(&self) -> BlockEntry {
        self.entry
    }

    /// Says whether the branch at its end leads back to its start.
    pub const fn is_loop(&self) -> bool {
        self.loops
    }

    /// Says whether the branch at its end leads back to its start, or to code that runs straight
    /// into it but for branches out of the loop.
    pub(crate) fn ends_loop(&self) -> bool {
        self.loops || !self.lead.is_empty()
    }

    /// One round, if the block is a loop by itself.
    pub const fn rounds(&self) -> Option<&LoopRound> {
        self.rounds.as_ref()
    }

    /// The address of the first instruction.
    pub fn start(&self) -> u64 {
        self.instructions[0].address
    }

    /// The address behind the last instruction.
    pub fn end(&self) -> u64 {
        self.instructions[self.instructions.len() - 1].end()
    }

    /// The position of the instruction at `address`; `None` if the block has no
    /// boundary there.
    pub fn index_of(&self, address: u64) -> Option<usize> {
        self.instructions
            .binary_search_by_key(&address, |instruction| instruction.address)
            .ok()
    }

    /// The address in memory that the code at `address` is about, with these
    /// registers: that of the nearest access before it whose registers are still
    /// as they were, else of the next one whose registers are there already.
    ///
    /// A string instruction that repeats is interrupted half-way, so its samples are about itself.
    /// In a loop all of whose accesses move by constants any of them stands for all, so that it is the
    /// same at every sample. Fixed addresses count only if there are no others: what a loop reads
    /// there stays in the first level.
    pub fn memory_access_at(&self, address: u64, values: &RegisterValues) -> Option<MemoryAccess> {
        let index = self.index_of(address)?;
        let at = &self.instructions[index];
        if at.memory.repeats {
            return at.operand?.access(values);
        }
        if let Some(rounds) = self.rounds.as_ref().filter(|r| r.all_move && self.loops) {
            return rounds.strides.first()?.operand.access(values);
        }
        [Operand::is_moving, Operand::is_fixed]
            .into_iter()
            .find_map(|kind| match self.operand_before(index, kind) {
                Some(operand) => operand.access(values),
                None => self.access_from(index, values, kind),
            })
    }

    /// The nearest before `index`, or that of the comparison whose branch led here.
    fn operand_before(&self, index: usize, kind: fn(Operand) -> bool) -> Option<Operand> {
        let mut overwritten = RegisterSet::EMPTY;
        for instruction in self.instructions[..index].iter().rev() {
            overwritten = overwritten.union(instruction.writes);
            if let Some(operand) = instruction.operand.filter(|&operand| kind(operand)) {
                let there = !operand.registers().intersects(overwritten);
                return there.then_some(operand);
            }
        }
        self.fused
            .filter(|&operand| kind(operand) && !operand.registers().intersects(overwritten))
    }

    /// The next from `index` on, in a loop once around, by values that are there already or follow
    /// from them.
    fn access_from(
        &self,
        index: usize,
        values: &RegisterValues,
        kind: fn(Operand) -> bool,
    ) -> Option<MemoryAccess> {
        let mut known = KnownValues::new(values);
        let around = if self.ends_loop() { index } else { 0 };
        let (before, from) = self.instructions.split_at(index);
        for instruction in from.iter().chain(&self.lead).chain(&before[..around]) {
            let operand = instruction.operand.filter(|&operand| kind(operand));
            let access = operand.and_then(|operand| operand.access_if_known(&known));
            if access.is_some() {
                return access;
            }
            known.follow_instruction(instruction.linear, instruction.writes);
        }
        None
    }

    pub(crate) fn class_at(&self, index: usize) -> InstructionClass {
        self.instructions[index].class
    }
}
