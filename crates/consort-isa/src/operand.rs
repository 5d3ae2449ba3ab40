//! Memory operands, and their addresses given the values of the registers.

use crate::{ArchRegister, RegisterSet};

/// Number of general registers that there are values of: those of x86-64.
pub const GENERAL_REGISTERS: usize = 16;

/// The values of the general registers at a sample, by hardware number
/// (x86: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterValues(pub [u64; GENERAL_REGISTERS]);

/// A memory operand: base + index x scale + displacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    /// Number of the base register; none for an absolute address.
    pub base: Option<u8>,
    /// Number of the index register.
    pub index: Option<u8>,
    /// Factor of the index: 1, 2, 4 or 8.
    pub scale: u8,
    /// Number that is added, modulo 2^64.
    pub displacement: u64,
}

/// A general register that is made of another: `(from << shift) + add`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearUpdate {
    /// Number of the register that gets the value.
    pub to: u8,
    /// Number of the register that it is made of.
    pub from: u8,
    /// Bits by which that is shifted to the left.
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
    /// The access with these values; none if it depends on a register without a value.
    pub fn access(self, values: &RegisterValues) -> Option<MemoryAccess> {
        self.access_if_known(&KnownValues::new(values))
    }

    /// Says whether its address is a constant, as those of global variables and literals are.
    pub const fn is_fixed(self) -> bool {
        self.base.is_none() && self.index.is_none()
    }

    /// Says whether its address depends on registers.
    pub(crate) const fn is_moving(self) -> bool {
        !self.is_fixed()
    }

    /// Says whether both walk through memory together: by the same registers.
    pub fn has_same_registers(self, other: Self) -> bool {
        (self.base, self.index, self.scale) == (other.base, other.index, other.scale)
    }

    /// The access with values that are known in part.
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

    /// The address; none if it depends on a register without a value.
    pub fn address(self, values: &RegisterValues) -> Option<u64> {
        let access = self.access_if_known(&KnownValues::new(values))?;
        Some(access.address)
    }
}

/// Values of the general registers as far as they are known without executing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownValues([Option<u64>; GENERAL_REGISTERS]);

impl KnownValues {
    pub(crate) fn new(values: &RegisterValues) -> Self {
        Self(values.0.map(Some))
    }

    fn get(&self, number: u8) -> Option<u64> {
        self.0.get(usize::from(number)).copied().flatten()
    }

    /// Follows an instruction that `writes` these registers: what it makes of known values by shift
    /// and addition (`linear`) is known, what else it writes is not.
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
