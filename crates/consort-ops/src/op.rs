//! Micro-operations and their registers.

use crate::{Fusion, OpKind};

/// One executed micro-operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Virtual address of its instruction.
    pub address: u64,
    /// Length of its instruction in bytes.
    pub length: u8,
    /// True for the first operation of its instruction.
    pub first: bool,
    /// Kind of operation, which says what executes it.
    pub kind: OpKind,
    /// Registers that it reads, the ones for an address included.
    pub sources: [Option<Register>; 4],
    /// Registers that it writes: a result and flags.
    pub targets: [Option<Register>; 2],
    /// Access to memory of a load or a store.
    pub data: Option<Access>,
    /// Outcome of a branch.
    pub branch: Option<Branch>,
    /// Part in a pair that a front end can fuse.
    pub fusion: Fusion,
}

/// Bytes that a load reads or a store writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Virtual address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub bytes: u16,
    /// True if the value is floating-point or goes to a vector register.
    pub is_vector: bool,
}

/// Executed transfer of control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Kind of transfer, which says what predicts it.
    pub turn: BranchKind,
    /// True if it was taken.
    pub taken: bool,
    /// Virtual address at which execution continued.
    pub target: u64,
}

/// Sort of a transfer of control, by what predicts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BranchKind {
    /// Branch on a condition.
    Conditional,
    /// Jump to an address in the instruction.
    Jump,
    /// Call of an address in the instruction.
    Call,
    /// Return from a call.
    Return,
    /// Jump to an address in a register or in memory.
    IndirectJump,
    /// Call of an address in a register or in memory.
    IndirectCall,
}

impl BranchKind {
    /// True if the instruction contains the target.
    #[must_use]
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::Conditional | Self::Jump | Self::Call)
    }
}

impl Op {
    /// Operation of `kind` at `address`, four bytes long, that touches nothing yet.
    #[must_use]
    pub const fn new(kind: OpKind, address: u64) -> Self {
        Self {
            address,
            length: 4,
            first: true,
            kind,
            sources: [None; 4],
            targets: [None; 2],
            data: None,
            branch: None,
            fusion: Fusion::None,
        }
    }
}

/// Architectural register, or one that only the operations of one instruction share.
///
/// Numbers below 64 are general registers, from 64 to 191 floating-point and vector
/// registers, the rest flags and temporaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(u8);

impl Register {
    /// Number of registers.
    pub const COUNT: usize = 256;
    /// Condition flags, written and read as one.
    pub const FLAGS: Self = Self(192);

    /// General register `number`, modulo 64.
    #[must_use]
    pub const fn general(number: u8) -> Self {
        Self(number % 64)
    }

    /// Floating-point or vector register `number`, modulo 128.
    #[must_use]
    pub const fn vector(number: u8) -> Self {
        Self(64 + number % 128)
    }

    /// Temporary `number`, modulo 32, between operations of one instruction.
    #[must_use]
    pub const fn temporary(number: u8) -> Self {
        Self(224 + number % 32)
    }

    /// The register with this [`Register::index`].
    #[must_use]
    pub const fn from_index(index: u8) -> Self {
        Self(index)
    }

    /// Number from 0 to 255.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// True if the floating-point and vector register file holds it.
    #[must_use]
    pub const fn is_vector(self) -> bool {
        64 <= self.0 && self.0 < 192
    }
}
