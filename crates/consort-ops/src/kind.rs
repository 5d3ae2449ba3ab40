//! Kinds of operations, and the classes of latency that chains of them distinguish.

use strum::VariantArray;

/// Kind of operation, by what executes it.
///
/// Kinds after [`OpKind::Other`] are executed like their [`OpKind::usual`] kind by cores whose
/// descriptions do not distinguish them. Trace files contain [`OpKind::index`], so new kinds come
/// last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantArray)]
pub enum OpKind {
    /// Integer arithmetic, logic, shifts, moves and address computation.
    Integer,
    /// Integer multiplication.
    Multiply,
    /// Integer division by up to 32 bits.
    Divide,
    /// Read from memory.
    Load,
    /// Write to memory: address and data together.
    Store,
    /// Transfer of control.
    Branch,
    /// Floating-point addition, comparison or conversion, scalar or packed.
    FpAdd,
    /// Floating-point multiplication, scalar or packed.
    FpMultiply,
    /// Fused multiplication and addition, scalar or packed.
    FpFused,
    /// Floating-point division, scalar or packed.
    FpDivide,
    /// Integer operation on vector registers.
    Vector,
    /// Move, shuffle, blend or logic of vector and floating-point registers.
    VectorMove,
    /// Fence, prefetch, system call and what executes nowhere.
    Other,
    /// Population count, bit scan, gathering and scattering of bits, checksum.
    Count,
    /// Address computation of three operands: base, index and displacement.
    Address,
    /// Shift of two registers together.
    DoubleShift,
    /// Integer division by 64 bits.
    WideDivide,
    /// Conversion between an integer in a general register and a floating-point number.
    Convert,
    /// Move between a general and a vector register.
    Cross,
    /// Packed multiplication of integers, but for [`OpKind::WideVectorMultiply`].
    VectorMultiply,
    /// Packed multiplication of integers of 32 bits or more into integers of the same length.
    WideVectorMultiply,
    /// Square root, scalar or packed.
    SquareRoot,
}

impl OpKind {
    /// Every kind, in the order of [`OpKind::index`].
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().expect("all");

    /// Position in [`OpKind::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The kind, up to [`OpKind::Other`], that executes it where a core does not distinguish it.
    #[must_use]
    pub const fn usual(self) -> Self {
        match self {
            Self::Count | Self::Address | Self::DoubleShift => Self::Integer,
            Self::WideDivide => Self::Divide,
            Self::Convert => Self::FpAdd,
            Self::Cross => Self::VectorMove,
            Self::VectorMultiply | Self::WideVectorMultiply => Self::Vector,
            Self::SquareRoot => Self::FpDivide,
            usual => usual,
        }
    }

    /// True if it computes on floating-point numbers.
    #[must_use]
    pub const fn is_floating(self) -> bool {
        matches!(
            self.usual(),
            Self::FpAdd | Self::FpMultiply | Self::FpFused | Self::FpDivide
        )
    }

    /// True if it passes the floating-point and vector side of a core.
    #[must_use]
    pub const fn is_vector_side(self) -> bool {
        self.is_floating() || matches!(self.usual(), Self::Vector | Self::VectorMove)
    }
}

/// Class of operations of about one latency on most cores, as chains of operations distinguish
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantArray)]
pub enum LatencyClass {
    /// Integer, branch, store and everything else that takes a cycle or so.
    Plain,
    /// Loads.
    Load,
    /// Floating-point additions and multiplications.
    Fp,
    /// Integer multiplications.
    Multiply,
    /// Integer divisions by up to 32 bits.
    Divide,
    /// Floating-point divisions.
    FpDivide,
    /// Moves and integer operations of vector registers.
    Vector,
    /// [`OpKind::Count`].
    Count,
    /// [`OpKind::Address`].
    Address,
    /// [`OpKind::DoubleShift`].
    DoubleShift,
    /// [`OpKind::WideDivide`].
    WideDivide,
    /// [`OpKind::Convert`].
    Convert,
    /// [`OpKind::Cross`].
    Cross,
    /// [`OpKind::VectorMultiply`].
    VectorMultiply,
    /// [`OpKind::WideVectorMultiply`].
    WideVectorMultiply,
    /// [`OpKind::SquareRoot`].
    SquareRoot,
    /// Loads that get some of their bytes from a store that is not yet written, and not all.
    PartialLoad,
}

impl LatencyClass {
    /// Number of classes.
    pub const COUNT: usize = Self::ALL.len();
    /// Every class, in the order of [`LatencyClass::index`].
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().expect("all");

    /// The class of a kind of operation, of loads that of usual ones.
    #[must_use]
    pub const fn from_kind(kind: OpKind) -> Self {
        match kind {
            OpKind::Load => Self::Load,
            OpKind::FpAdd | OpKind::FpMultiply | OpKind::FpFused => Self::Fp,
            OpKind::Multiply => Self::Multiply,
            OpKind::Divide => Self::Divide,
            OpKind::FpDivide => Self::FpDivide,
            OpKind::Vector | OpKind::VectorMove => Self::Vector,
            OpKind::Count => Self::Count,
            OpKind::Address => Self::Address,
            OpKind::DoubleShift => Self::DoubleShift,
            OpKind::WideDivide => Self::WideDivide,
            OpKind::Convert => Self::Convert,
            OpKind::Cross => Self::Cross,
            OpKind::VectorMultiply => Self::VectorMultiply,
            OpKind::WideVectorMultiply => Self::WideVectorMultiply,
            OpKind::SquareRoot => Self::SquareRoot,
            OpKind::Integer | OpKind::Store | OpKind::Branch | OpKind::Other => Self::Plain,
        }
    }

    /// Position in [`LatencyClass::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Key in program files.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Load => "load",
            Self::Fp => "fp",
            Self::Multiply => "multiply",
            Self::Divide => "divide",
            Self::FpDivide => "fp_divide",
            Self::Vector => "vector",
            Self::Count => "count",
            Self::Address => "address",
            Self::DoubleShift => "double_shift",
            Self::WideDivide => "wide_divide",
            Self::Convert => "convert",
            Self::Cross => "cross",
            Self::VectorMultiply => "vector_multiply",
            Self::WideVectorMultiply => "wide_vector_multiply",
            Self::SquareRoot => "square_root",
            Self::PartialLoad => "partial_load",
        }
    }

    /// Cycles from operands to result on the core for which chains are measured: those of Skylake
    /// in LLVM's `X86SchedSkylakeServer.td`, with a load that hits the L1, a division by 32 bits
    /// and moves between register files as in Fog's instruction tables, and the shortest division
    /// by 64 bits there.
    #[must_use]
    pub const fn reference_cycles(self) -> u64 {
        match self {
            Self::Plain | Self::Vector => 1,
            Self::Cross => 2,
            Self::Multiply | Self::Count | Self::Address | Self::DoubleShift => 3,
            Self::Load | Self::Fp => 4,
            Self::VectorMultiply => 5,
            Self::Convert => 6,
            Self::WideVectorMultiply => 10,
            Self::FpDivide => 14,
            Self::PartialLoad => 15,
            Self::SquareRoot => 18,
            Self::Divide => 24,
            Self::WideDivide => 42,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_classes_are_listed_by_index() {
        for (position, kind) in OpKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), position);
            assert!(kind.usual() <= OpKind::Other);
        }
        for (position, class) in LatencyClass::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), position);
        }
    }
}
