//! The straight-line run of code around a sampled address.
//!
//! A block is decoded once. The caller keeps it under its start address and looks up every further
//! sample ([`BlockFacts::index_of`]).
//!
//! Limits: a block longer than the window is cut, so samples in different parts of it are in
//! different, overlapping blocks. Indirect branches into the middle of a block are not seen.

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
        /// The requested address.
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

/// Way in which control reaches the first instruction of a block.
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

/// A basic block and the facts by which its samples are charged to causes.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockFacts {
    instructions: Box<[Instruction]>,
    suspicions: Box<[Suspicion]>,
    class_counts: [u16; 7],
    entry: BlockEntry,
    loops: bool,
    /// Instructions before the block in each round of a loop that it ends.
    lead: Box<[Instruction]>,
    rounds: Option<LoopRound>,
    /// Operand of a comparison with memory before a branch that leads here.
    fused: Option<Operand>,
}

impl BlockFacts {
    /// The instructions in order of address; never empty.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// For each instruction, the cause that an excess of samples on it points to.
    pub fn suspicions(&self) -> &[Suspicion] {
        &self.suspicions
    }

    /// Number of instructions of each class, as in [`InstructionClass::ALL`].
    pub const fn class_counts(&self) -> [u16; 7] {
        self.class_counts
    }

    /// Way in which control reaches the first instruction.
    pub const fn entry(&self) -> BlockEntry {
        self.entry
    }

    /// True if the branch at its end leads back to its start.
    pub const fn is_loop(&self) -> bool {
        self.loops
    }

    /// True if the branch at its end leads back to its start, or to code that runs straight into it
    /// except for branches out of the loop.
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

    /// The position of the instruction at `address`; `None` if the block has no boundary there.
    pub fn index_of(&self, address: u64) -> Option<usize> {
        self.instructions
            .binary_search_by_key(&address, |instruction| instruction.address)
            .ok()
    }

    /// The memory access that the code at `address` works on, given these register values: the
    /// nearest access before it whose registers have not changed since, or else the next one whose
    /// registers are already known.
    ///
    /// A repeated string instruction is interrupted half-way, so its samples are about itself. If
    /// all accesses of a loop move by constants, any one stands for all; the first is used, so that
    /// it is the same at every sample. Fixed addresses count only if there are no others, because
    /// what a loop reads there stays in the first-level cache.
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

    /// The operand of the nearest access before `index`, or of the comparison whose branch led
    /// here.
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

    /// The next access from `index` on (in a loop, once around) whose registers are known or follow
    /// from known values.
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
