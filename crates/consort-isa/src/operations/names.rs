//! Registers of x86 as numbers of [`consort_ops::Register`].

use consort_ops::Register;
use iced_x86::Register as X86;

/// Vector registers behind xmm0 to xmm31: those of x87, of MMX, and masks.
const X87: u8 = 32;
const MMX: u8 = 40;
const MASK: u8 = 48;

/// The register that holds `register`; nothing for segments, the instruction pointer and the
/// like.
pub(super) fn register(register: X86) -> Option<Register> {
    let number = u8::try_from(register.number()).ok()?;
    if register.is_gpr() {
        Some(Register::general(number))
    } else if register.is_vector_register() {
        Some(Register::vector(number))
    } else if register.is_st() {
        Some(Register::vector(X87 + number))
    } else if register.is_mm() {
        Some(Register::vector(MMX + number))
    } else if register.is_k() {
        Some(Register::vector(MASK + number))
    } else {
        None
    }
}

/// Returns true where a write leaves the rest of the register as it was.
pub(super) fn merges(register: X86) -> bool {
    register.is_gpr8() || register.is_gpr16()
}
