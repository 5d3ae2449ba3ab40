use crate::{OpKind, Register};

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
}

/// Bytes that a load reads or a store writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Virtual address of the first byte.
    pub address: u64,
    /// Number of bytes.
    pub bytes: u16,
    /// True where the value is floating-point or goes to a vector register.
    pub is_vector: bool,
}

/// Executed transfer of control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Kind of transfer, which says what predicts it.
    pub turn: BranchKind,
    /// True where it went to its target.
    pub taken: bool,
    /// Virtual address at which execution went on.
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
    /// Says whether the instruction tells where to.
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
        }
    }
}
