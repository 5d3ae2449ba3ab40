//! Memory operands, and their addresses given the values of the registers.

/// One architectural register, parts and widths of it taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArchRegister {
    /// A general register, 0 to 31 (x86: the hardware number; A64: X0 to X30, and 31 for SP).
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

    /// True if `register` is a member.
    pub const fn contains(self, register: ArchRegister) -> bool {
        self.0 & (1 << register.bit()) != 0
    }

    /// True if the two sets share a member.
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

    /// True if there are no members.
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

/// Number of general registers with values: those of x86-64.
pub const GENERAL_REGISTERS: usize = 16;

/// The values of the general registers at a sample, by hardware number
/// (x86: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterValues(pub [u64; GENERAL_REGISTERS]);

/// A memory operand: base + index x scale + displacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    /// Number of the base register; `None` for an absolute address.
    pub base: Option<u8>,
    /// Number of the index register.
    pub index: Option<u8>,
    /// Factor of the index: 1, 2, 4 or 8.
    pub scale: u8,
    /// Number that is added, modulo 2^64.
    pub displacement: u64,
}

/// Update of a general register from another: `(from << shift) + add`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearUpdate {
    /// Number of the register that gets the value.
    pub to: u8,
    /// Number of the source register.
    pub from: u8,
    /// Bits of the shift to the left.
    pub shift: u32,
    /// Number that is added, modulo 2^64.
    pub add: u64,
    /// The upper half of the value is zero.
    pub narrow: bool,
}

/// An access to memory at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The instruction's operand.
    pub operand: Operand,
    /// The address in memory.
    pub address: u64,
}

impl Operand {
    /// The access with these register values; `None` if it depends on a register without a value.
    pub fn access(self, values: &RegisterValues) -> Option<MemoryAccess> {
        self.access_if_known(&KnownValues::new(values))
    }

    /// True if its address is a constant, as for global variables and literals.
    pub const fn is_fixed(self) -> bool {
        self.base.is_none() && self.index.is_none()
    }

    pub(crate) const fn is_moving(self) -> bool {
        !self.is_fixed()
    }

    /// True if both move through memory together, because they use the same registers.
    pub fn has_same_registers(self, other: Self) -> bool {
        (self.base, self.index, self.scale) == (other.base, other.index, other.scale)
    }

    pub(crate) fn access_if_known(self, values: &KnownValues) -> Option<MemoryAccess> {
        let of = |register: Option<u8>| match register {
            Some(number) => values.get(number),
            None => Some(0),
        };
        let scaled = of(self.index)?.wrapping_mul(u64::from(self.scale));
        let sum = of(self.base)?.wrapping_add(scaled);
        Some(MemoryAccess {
            operand: self,
            address: sum.wrapping_add(self.displacement),
        })
    }

    /// The registers that the address depends on.
    pub fn registers(self) -> RegisterSet {
        let parts = [self.base, self.index].into_iter().flatten();
        parts.map(ArchRegister::General).collect()
    }

    /// The address; `None` if it depends on a register without a value.
    pub fn address(self, values: &RegisterValues) -> Option<u64> {
        let access = self.access_if_known(&KnownValues::new(values))?;
        Some(access.address)
    }
}

/// Values of the general registers, as far as they are known without executing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownValues([Option<u64>; GENERAL_REGISTERS]);

impl KnownValues {
    pub(crate) fn new(values: &RegisterValues) -> Self {
        Self(values.0.map(Some))
    }

    fn get(&self, number: u8) -> Option<u64> {
        self.0.get(usize::from(number)).copied().flatten()
    }

    /// Updates the values after an instruction that `writes` these registers: a value that `linear`
    /// derives from a known one stays known, all other written ones become unknown.
    pub(crate) fn follow_instruction(&mut self, linear: Option<LinearUpdate>, writes: RegisterSet) {
        let made = linear.map(|linear| (linear.to, self.linear_value(linear)));
        for number in 0..GENERAL_REGISTERS {
            let register = u8::try_from(number).map(ArchRegister::General);
            if register.is_ok_and(|register| writes.contains(register)) {
                self.0[number] = None;
            }
        }
        if let Some((to, value)) = made
            && let Some(slot) = self.0.get_mut(usize::from(to))
        {
            *slot = value;
        }
    }

    fn linear_value(&self, linear: LinearUpdate) -> Option<u64> {
        let shifted = self.get(linear.from)?.checked_shl(linear.shift)?;
        let value = shifted.wrapping_add(linear.add);
        Some(if linear.narrow {
            value & u64::from(u32::MAX)
        } else {
            value
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_sums_that_wrap_around() {
        let mut values = RegisterValues([0; GENERAL_REGISTERS]);
        values.0[3] = 0x1000;
        values.0[9] = 5;
        let mut operand = Operand {
            base: Some(3),
            index: Some(9),
            scale: 8,
            displacement: u64::MAX,
        };
        assert_eq!(operand.address(&values), Some(0x1027));
        operand.base = None;
        assert_eq!(operand.address(&values), Some(0x27));
        operand.index = Some(200);
        assert_eq!(operand.address(&values), None);
    }
}
