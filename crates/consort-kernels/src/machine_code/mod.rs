//! Machine code written at run time, for `jit` and `selfmod`.
//!
//! A [`CodePage`] is an anonymous mapping that is writable or executable, never both (W^X), changed
//! over by `mprotect`. The code is a loop with a result that [`Body::result`] knows.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod encode;
/// No code is known for other processors: `check_supported` refuses them before any of this runs.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod encode {
    pub(super) const KNOWN: bool = false;

    pub(super) fn encode(_body: super::Body) -> Vec<u8> {
        Vec::new()
    }

    pub(super) fn patch_factor(_code: &mut [u8], _factor: u8) {}

    pub(super) fn publish(_code: &[u8]) {}
}
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod encode;

use crate::kernel::KernelError;
use nix::errno::Errno;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

/// A function `extern "C" fn(iterations: u64) -> u64`, where `iterations` is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Adds `addend`, a double, to seven sums each iteration; returns their sum.
    Fp {
        /// At most 127.
        addend: u8,
    },
    /// `x = x * factor + n` for `n` from `iterations` down to 1.
    Int {
        /// At most 127: an immediate byte that the processor extends by its sign.
        factor: u8,
    },
}

impl Body {
    pub(crate) fn result(self, iterations: u64) -> u64 {
        match self {
            Self::Fp { addend } => 7 * u64::from(addend) * iterations,
            Self::Int { factor } => (1..=iterations).rev().fold(0, |x: u64, n| {
                x.wrapping_mul(u64::from(factor)).wrapping_add(n)
            }),
        }
    }
}

/// Fails on processors for which no code is known.
pub(crate) fn check_supported(kernel: &'static str) -> Result<(), KernelError> {
    let arch = std::env::consts::ARCH;
    match encode::KNOWN {
        true => Ok(()),
        false => Err(KernelError::Unsupported { kernel, arch }),
    }
}

/// The mapping's size: a page on every Linux system (64 KiB is the largest page size in use).
const BYTES: NonZeroUsize = NonZeroUsize::new(64 << 10).expect("65,536 is not zero");

/// Code that returns at once is written at the start, so that `run` always finds a function.
const EMPTY: Body = Body::Int { factor: 1 };

/// An anonymous mapping that holds one function.
#[derive(Debug)]
pub(crate) struct CodePage {
    start: NonNull<c_void>,
    code_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread.
unsafe impl Send for CodePage {}

impl CodePage {
    /// Maps the page and writes a first function, so that a host which forbids
    /// executable memory is found out at once.
    pub(crate) fn new() -> Result<Self, KernelError> {
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice
        // touches no existing memory.
        let start = unsafe { mmap_anonymous(None, BYTES, ProtFlags::PROT_READ, flags) };
        let mut page = Self {
            start: start.map_err(mapping_error)?,
            code_bytes: 0,
        };
        page.write(EMPTY)?;
        Ok(page)
    }

    /// Writes a function and leaves it executable.
    pub(crate) fn write(&mut self, body: Body) -> Result<(), KernelError> {
        let code = encode::encode(body);
        self.code_bytes = code.len();
        self.change(|page| page[..code.len()].copy_from_slice(&code))
    }

    /// Writes a function and calls it.
    pub(crate) fn write_and_run(
        &mut self,
        body: Body,
        iterations: u64,
    ) -> Result<u64, KernelError> {
        self.write(body)?;
        Ok(self.run(iterations))
    }

    /// Patches the factor of a written [`Body::Int`] and calls it.
    pub(crate) fn patch_factor_and_run(
        &mut self,
        factor: u8,
        iterations: u64,
    ) -> Result<u64, KernelError> {
        self.change(|page| encode::patch_factor(page, factor))?;
        Ok(self.run(iterations))
    }

    /// Makes the page writable, lets `edit` change it, makes it executable.
    fn change(&mut self, edit: impl FnOnce(&mut [u8])) -> Result<(), KernelError> {
        self.protect(ProtFlags::PROT_READ | ProtFlags::PROT_WRITE)?;
        // SAFETY: the mapping is BYTES long, zero-filled by the kernel, writable
        // since the line above, and not borrowed elsewhere (`&mut self`).
        let page =
            unsafe { std::slice::from_raw_parts_mut(self.start.cast().as_ptr(), BYTES.get()) };
        edit(page);
        encode::publish(&page[..self.code_bytes]);
        self.protect(ProtFlags::PROT_READ | ProtFlags::PROT_EXEC)
    }

    fn protect(&mut self, protection: ProtFlags) -> Result<(), KernelError> {
        // SAFETY: the range is this value's own mapping, and no slice into it outlives `change`.
        unsafe { mprotect(self.start, BYTES.get(), protection) }.map_err(mapping_error)
    }

    /// Calls the function with at least one iteration.
    fn run(&self, iterations: u64) -> u64 {
        // SAFETY: `new` and `write` leave a whole function of this signature at
        // the start of the mapping, executable. It uses caller-saved registers
        // only, touches no memory, and ends for any `iterations` above zero.
        unsafe {
            let function: extern "C" fn(u64) -> u64 = std::mem::transmute(self.start.as_ptr());
            function(iterations.max(1))
        }
    }
}

impl Drop for CodePage {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and it is not used again. A
        // failure leaves it mapped, which does no harm.
        let _ = unsafe { munmap(self.start, BYTES.get()) };
    }
}

fn mapping_error(source: Errno) -> KernelError {
    KernelError::Mapping {
        bytes: BYTES.get(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skipped;
    use proptest::prelude::*;

    fn bodies() -> impl Strategy<Value = Body> {
        (any::<bool>(), 1_u8..128).prop_map(|(fp, n)| match fp {
            true => Body::Fp { addend: n },
            false => Body::Int { factor: n },
        })
    }

    proptest! {
        #[test]
        fn code_computes_the_result_of_its_body(
            rounds in prop::collection::vec((bodies(), 1_u64..2_000), 1..8),
        ) {
            if check_supported("test").is_err() {
                skipped("no code for this processor");
                return Ok(());
            }
            let mut page = CodePage::new().unwrap();
            for (body, iterations) in rounds {
                let result = page.write_and_run(body, iterations).unwrap();
                prop_assert_eq!(result, body.result(iterations));
            }
        }

        #[test]
        fn patch_changes_only_the_factor(first in 1_u8..128, second in 1_u8..128) {
            let mut code = encode::encode(Body::Int { factor: first });
            encode::patch_factor(&mut code, second);
            prop_assert_eq!(code, encode::encode(Body::Int { factor: second }));
        }
    }
}
