//! Values that the compiler must take as they come, kept in a register.
//!
//! `std::hint::black_box` sends a value through memory, which would mix loads
//! and stores into kernels that must have none. An empty piece of assembly hides the value just as
//! well. On processors other than x86_64 and aarch64, `black_box` has to do.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use core::arch::asm;

/// Returns `value`, about which the compiler knows nothing from here on.
#[inline(always)]
pub(crate) fn int(value: u64) -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut value = value;
        // SAFETY: no instruction is emitted; the register keeps its value.
        unsafe {
            asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags));
        };
        value
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    std::hint::black_box(value)
}

/// Returns `value` alone in a floating-point register, so that it is not packed with others.
#[inline(always)]
pub(crate) fn fp(value: f64) -> f64 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut value = value;
        // SAFETY: no instruction is emitted; the register keeps its value.
        unsafe {
            asm!("/* {0} */", inout(xmm_reg) value, options(nomem, nostack, preserves_flags));
        };
        value
    }
    #[cfg(target_arch = "aarch64")]
    {
        let mut value = value;
        // SAFETY: no instruction is emitted; the register keeps its value.
        unsafe {
            asm!("/* {0:d} */", inout(vreg) value, options(nomem, nostack, preserves_flags));
        };
        value
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    std::hint::black_box(value)
}
