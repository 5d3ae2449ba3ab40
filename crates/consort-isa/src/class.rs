//! The seven instruction classes, and shares of time by class.

use serde::Serialize;

/// Purpose of an instruction.
///
/// An instruction that computes on a memory operand is of the class of its
/// computation; the memory access is told by [`crate::MemoryUse`].
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

/// Shares by class; they sum to 1 wherever a mix is handed out.
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

    /// The mix whose shares are `weights` scaled to sum to 1. `weights` must
    /// have a positive sum.
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
