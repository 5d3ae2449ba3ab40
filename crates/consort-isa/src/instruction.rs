//! Facts about one decoded instruction, and the reason why bytes are none.

use crate::{Arch, InstructionClass, LinearUpdate, Operand, RegisterSet};

/// Use that an instruction makes of memory. Calls and returns touch the stack.
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

/// Time that the execution unit of an instruction takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitLatency {
    /// One to three cycles, pipelined.
    #[default]
    Short,
    /// Floating-point arithmetic: about four cycles, pipelined.
    Pipelined,
    /// Ten cycles and more, badly pipelined: division, square root, x87
    /// transcendental functions.
    Long,
}

/// Way that control takes behind an instruction. Targets are absent when indirect.
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
    /// Says whether a basic block ends here.
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
    /// Those of `reads` that make up a memory address.
    pub address_registers: RegisterSet,
    /// Its use of memory.
    pub memory: MemoryUse,
    /// Place of that use, if that is one place that general registers tell: neither the
    /// stack nor relative to a segment.
    pub operand: Option<Operand>,
    /// The general register that it adds a constant to, and the constant.
    pub advance: Option<(u8, i64)>,
    /// Bytes of each element, if it repeats over a block of memory.
    pub element_bytes: Option<u8>,
    /// The general register that it makes of another by shift and addition, if it does no more.
    pub linear: Option<LinearUpdate>,
    /// Time that its execution unit takes.
    pub unit: UnitLatency,
    /// It is atomic, a fence, or otherwise waits for what came before it.
    pub serialising: bool,
    /// Way that control takes behind it.
    pub flow: FlowKind,
}

impl Instruction {
    /// The address behind its last byte.
    pub const fn end(&self) -> u64 {
        self.address.wrapping_add(self.len as u64)
    }

    /// Returns true where it reads memory that may well miss the first-level cache.
    pub(crate) const fn may_miss(&self) -> bool {
        self.memory.reads && !self.memory.stack && !matches!(self.class, InstructionClass::Branch)
    }

    /// Returns true where it writes memory that may well miss the first-level cache.
    pub(crate) const fn may_fill_store_buffer(&self) -> bool {
        self.memory.writes && !self.memory.stack && !matches!(self.class, InstructionClass::Branch)
    }
}

/// Length and target of an instruction met in passing: an [`Instruction`] without the work on its
/// operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InstructionStep {
    /// Length in bytes.
    pub(crate) len: usize,
    /// Target of its branch, if it says so itself.
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
