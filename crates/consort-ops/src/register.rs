/// Architectural register, or one that only the operations of one instruction share.
///
/// Numbers below 64 are general registers, from 64 to 191 floating-point and vector
/// registers, the rest flags and temporaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register(u8);

impl Register {
    /// Number of registers that can be told apart.
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

    /// Says whether the floating-point and vector register file holds it.
    #[must_use]
    pub const fn is_vector(self) -> bool {
        64 <= self.0 && self.0 < 192
    }
}
