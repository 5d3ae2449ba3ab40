//! Sets of registers, reduced to what dependences need.

/// One architectural register, parts and widths of it taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArchRegister {
    /// A general register, 0 to 31 (x86: the hardware number; A64: X0 to X30,
    /// and 31 for SP).
    General(u8),
    /// A vector register, 0 to 31.
    Vector(u8),
    /// A mask or predicate register, 0 to 15.
    Mask(u8),
    /// The x87 stack as a whole, MMX registers included.
    X87,
    /// The condition flags as a whole.
    Flags,
}

impl ArchRegister {
    const fn bit(self) -> u32 {
        match self {
            Self::General(number) => (number & 31) as u32,
            Self::Vector(number) => 32 + (number & 31) as u32,
            Self::Mask(number) => 64 + (number & 15) as u32,
            Self::X87 => 80,
            Self::Flags => 81,
        }
    }
}

/// A set of [`ArchRegister`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet(u128);

impl RegisterSet {
    /// The set without members.
    pub const EMPTY: Self = Self(0);

    /// Adds one register.
    pub const fn insert(&mut self, register: ArchRegister) {
        self.0 |= 1 << register.bit();
    }

    /// Says whether `register` is a member.
    pub const fn contains(self, register: ArchRegister) -> bool {
        self.0 & (1 << register.bit()) != 0
    }

    /// Says whether the two sets share a member.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The members of either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The members that `other` lacks.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The members as numbers below 128, one per register.
    pub(crate) fn numbers(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let number = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (number < 128).then_some(number)
        })
    }

    /// Says whether there are no members.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<ArchRegister> for RegisterSet {
    fn from_iter<I: IntoIterator<Item = ArchRegister>>(registers: I) -> Self {
        let mut set = Self::EMPTY;
        for register in registers {
            set.insert(register);
        }
        set
    }
}
