/// Kind of operation, by what executes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OpKind {
    /// Integer arithmetic, logic, shifts, moves and address computation.
    Integer,
    /// Integer multiplication.
    Multiply,
    /// Integer division.
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
    /// Floating-point division or square root, scalar or packed.
    FpDivide,
    /// Integer operation on vector registers.
    Vector,
    /// Move, shuffle, blend or logic of vector and floating-point registers.
    VectorMove,
    /// Fence, prefetch, system call and what executes nowhere.
    Other,
}

impl OpKind {
    /// Every kind, in the order of [`OpKind::index`].
    pub const ALL: [Self; 13] = [
        Self::Integer,
        Self::Multiply,
        Self::Divide,
        Self::Load,
        Self::Store,
        Self::Branch,
        Self::FpAdd,
        Self::FpMultiply,
        Self::FpFused,
        Self::FpDivide,
        Self::Vector,
        Self::VectorMove,
        Self::Other,
    ];

    /// Position in [`OpKind::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Says whether it computes on floating-point numbers.
    #[must_use]
    pub const fn is_floating(self) -> bool {
        matches!(
            self,
            Self::FpAdd | Self::FpMultiply | Self::FpFused | Self::FpDivide
        )
    }

    /// Says whether it passes the floating-point and vector side of a core.
    #[must_use]
    pub const fn is_vector_side(self) -> bool {
        self.is_floating() || matches!(self, Self::Vector | Self::VectorMove)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_listed_by_index() {
        for (position, kind) in OpKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), position);
        }
    }
}
