//! Which address an instruction accesses, given the values of the registers.

use crate::{Register, RegisterSet};

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

/// An access to memory at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The instruction's operand.
    pub operand: Operand,
    /// The address in memory.
    pub address: u64,
}

impl Operand {
    /// The access with these values; none if it depends on a register without a value.
    pub fn access(self, values: &RegisterValues) -> Option<Access> {
        let address = self.address(values)?;
        Some(Access {
            operand: self,
            address,
        })
    }

    /// Says whether both walk through memory together: by the same registers.
    pub fn is_beside(self, other: Self) -> bool {
        (self.base, self.index, self.scale) == (other.base, other.index, other.scale)
    }

    /// The registers that the address depends on.
    pub fn registers(self) -> RegisterSet {
        let parts = [self.base, self.index].into_iter().flatten();
        parts.map(Register::General).collect()
    }

    /// The address; none if it depends on a register without a value.
    pub fn address(self, values: &RegisterValues) -> Option<u64> {
        let of = |register: Option<u8>| match register {
            Some(number) => values.0.get(usize::from(number)).copied(),
            None => Some(0),
        };
        let scaled = of(self.index)?.wrapping_mul(u64::from(self.scale));
        let sum = of(self.base)?.wrapping_add(scaled);
        Some(sum.wrapping_add(self.displacement))
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
