//! Facts about one decoded instruction, and the reason why bytes are none.

use serde::Serialize;

use crate::{Arch, LinearUpdate, Operand, RegisterSet};

/// Purpose of an instruction.
///
/// An instruction that computes on a memory operand has the class of its computation;
/// [`crate::MemoryUse`] describes the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InstructionClass {
    /// Floating-point arithmetic, comparison and conversion, scalar or packed;
    /// x87 with its moves between registers.
    Fp,
    /// Work on vector registers that is not floating-point arithmetic: integer
    /// SIMD, moves between registers, shuffles, logic, cryptography, masks.
    Vector,
    /// Integer work on general registers, multiplication and division included.
    Int,
    /// Data movement out of memory, prefetches included.
    Load,
    /// Data movement into memory; copies from memory to memory count here.
    Store,
    /// Jumps, calls and returns.
    Branch,
    /// System instructions, fences, no-operations, and what is not known.
    Other,
}

impl InstructionClass {
    /// All classes, in the order of [`ClassMix::shares`].
    pub const ALL: [Self; 7] = [
        Self::Fp,
        Self::Vector,
        Self::Int,
        Self::Load,
        Self::Store,
        Self::Branch,
        Self::Other,
    ];

    /// The position in [`InstructionClass::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Shares by class; they sum to 1 in every mix that this crate returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ClassMix {
    /// Share of [`InstructionClass::Fp`].
    pub fp: f64,
    /// Share of [`InstructionClass::Vector`].
    pub vector: f64,
    /// Share of [`InstructionClass::Int`].
    pub int: f64,
    /// Share of [`InstructionClass::Load`].
    pub load: f64,
    /// Share of [`InstructionClass::Store`].
    pub store: f64,
    /// Share of [`InstructionClass::Branch`].
    pub branch: f64,
    /// Share of [`InstructionClass::Other`].
    pub other: f64,
}

impl ClassMix {
    /// The shares in the order of [`InstructionClass::ALL`].
    pub const fn shares(&self) -> [f64; 7] {
        [
            self.fp,
            self.vector,
            self.int,
            self.load,
            self.store,
            self.branch,
            self.other,
        ]
    }

    /// The mix whose shares are `weights` scaled to sum to 1. `weights` must have a positive sum.
    pub(crate) fn from_weights(weights: [f64; 7]) -> Self {
        let total: f64 = weights.iter().sum();
        let [fp, vector, int, load, store, branch, other] = weights.map(|weight| weight / total);
        Self {
            fp,
            vector,
            int,
            load,
            store,
            branch,
            other,
        }
    }
}

/// Memory use of an instruction. Calls and returns touch the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// It reads memory.
    pub reads: bool,
    /// It writes memory.
    pub writes: bool,
    /// The access is to the stack frame (through the stack pointer, or below
    /// the x86 frame pointer): practically always a first-level hit.
    pub stack: bool,
    /// It repeats over a block of memory and can be interrupted half-way.
    pub repeats: bool,
}

/// Time in the execution unit of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitLatency {
    /// One to three cycles, pipelined.
    #[default]
    Short,
    /// Floating-point arithmetic: about four cycles, pipelined.
    Pipelined,
    /// Ten cycles and more, badly pipelined: division, square root, x87 transcendental functions.
    Long,
}

/// Control flow behind an instruction. Indirect branches have no target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowKind {
    /// To the next instruction.
    #[default]
    Next,
    /// To the target or to the next instruction.
    Conditional(Option<u64>),
    /// To the target.
    Jump(Option<u64>),
    /// To the target, and back.
    Call(Option<u64>),
    /// Back to the caller.
    Return,
    /// Nowhere: a trap.
    Stop,
}

impl FlowKind {
    /// True if a basic block ends here.
    pub const fn ends_block(self) -> bool {
        !matches!(self, Self::Next)
    }

    /// The target of a direct branch.
    pub const fn target(self) -> Option<u64> {
        match self {
            Self::Conditional(target) | Self::Jump(target) | Self::Call(target) => target,
            Self::Next | Self::Return | Self::Stop => None,
        }
    }
}

/// One decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The address of its first byte.
    pub address: u64,
    /// Its length in bytes.
    pub len: u8,
    /// Its purpose.
    pub class: InstructionClass,
    /// Registers whose value it needs, those of addresses included.
    pub reads: RegisterSet,
    /// Registers that it gives a new value.
    pub writes: RegisterSet,
    /// The part of `reads` that makes up a memory address.
    pub address_registers: RegisterSet,
    /// Its use of memory.
    pub memory: MemoryUse,
    /// Memory operand, if the access is one place given by general registers: neither the stack nor
    /// relative to a segment.
    pub operand: Option<Operand>,
    /// The general register that it adds a constant to, and the constant.
    pub advance: Option<(u8, i64)>,
    /// Bytes of each element, if it repeats over a block of memory.
    pub element_bytes: Option<u8>,
    /// The general register that it computes from another by shift and addition, if it does nothing
    /// else.
    pub linear: Option<LinearUpdate>,
    /// Time in its execution unit.
    pub unit: UnitLatency,
    /// It is atomic, a fence, or otherwise waits for what came before it.
    pub serialising: bool,
    /// Control flow behind it.
    pub flow: FlowKind,
}

impl Instruction {
    /// The address behind its last byte.
    pub const fn end(&self) -> u64 {
        self.address.wrapping_add(self.len as u64)
    }

    /// True if it reads memory that may well miss the first-level cache.
    pub(crate) const fn may_miss(&self) -> bool {
        self.memory.reads && !self.memory.stack && !matches!(self.class, InstructionClass::Branch)
    }

    /// True if it writes memory that may well miss the first-level cache.
    pub(crate) const fn may_fill_store_buffer(&self) -> bool {
        self.memory.writes && !self.memory.stack && !matches!(self.class, InstructionClass::Branch)
    }
}

/// Length and target of an instruction, without the cost of decoding its operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstructionStep {
    pub(crate) len: usize,
    /// Target of a direct branch.
    pub(crate) target: Option<u64>,
}

/// Reason why bytes are not an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end inside the instruction.
    #[error("code at {address:#x} ends inside an instruction; more bytes behind it are needed")]
    Truncated {
        /// Address of the instruction.
        address: u64,
    },
    /// No user program can run these bytes.
    #[error("no {arch:?} instruction of a user program at {address:#x}; it may be data")]
    Invalid {
        /// The instruction set that was tried.
        arch: Arch,
        /// Address at which the instruction would start.
        address: u64,
    },
    /// The build has no decoder of this instruction set.
    #[error("this build does not decode {arch:?}; the feature `a64` of consort-isa does")]
    LeftOut {
        /// The instruction set.
        arch: Arch,
    },
}
