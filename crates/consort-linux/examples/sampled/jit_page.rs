//! A page of memory to write code into and run it.

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::ptr::NonNull;

/// mov ecx, 100000; 4 x addsd; dec ecx; jnz; ret.
#[cfg(target_arch = "x86_64")]
pub(crate) const FP: &[u8] = &[
    0xb9, 0xa0, 0x86, 0x01, 0x00, 0xf2, 0x0f, 0x58, 0xc4, 0xf2, 0x0f, 0x58, 0xcc, 0xf2, 0x0f, 0x58,
    0xd4, 0xf2, 0x0f, 0x58, 0xdc, 0xff, 0xc9, 0x75, 0xec, 0xc3,
];
/// mov ecx, 100000; 4 x add eax, 1 in a long form; dec ecx; jnz; ret.
#[cfg(target_arch = "x86_64")]
pub(crate) const INT: &[u8] = &[
    0xb9, 0xa0, 0x86, 0x01, 0x00, 0x66, 0x83, 0xc0, 0x01, 0x66, 0x83, 0xc0, 0x01, 0x66, 0x83, 0xc0,
    0x01, 0x66, 0x83, 0xc0, 0x01, 0xff, 0xc9, 0x75, 0xec, 0xc3,
];

/// mov w1, #0x8000; 4 x fadd d0, d0, d1; subs w1, w1, #1; b.ne; ret.
#[cfg(target_arch = "aarch64")]
pub(crate) const FP: &[u8] = &[
    0x01, 0x00, 0x90, 0x52, 0x00, 0x28, 0x61, 0x1e, 0x00, 0x28, 0x61, 0x1e, 0x00, 0x28, 0x61, 0x1e,
    0x00, 0x28, 0x61, 0x1e, 0x21, 0x04, 0x00, 0x71, 0x61, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6,
];
/// mov w1, #0x8000; 4 x add w0, w0, #1; subs w1, w1, #1; b.ne; ret.
#[cfg(target_arch = "aarch64")]
pub(crate) const INT: &[u8] = &[
    0x01, 0x00, 0x90, 0x52, 0x00, 0x04, 0x00, 0x11, 0x00, 0x04, 0x00, 0x11, 0x00, 0x04, 0x00, 0x11,
    0x00, 0x04, 0x00, 0x11, 0x21, 0x04, 0x00, 0x71, 0x61, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6,
];

const PAGE_BYTES: usize = 65_536;

/// A page that is either writable or executable, never both.
pub(crate) struct Page(NonNull<c_void>);

impl Page {
    pub(crate) fn new() -> Self {
        let len = NonZeroUsize::new(PAGE_BYTES).expect("not zero");
        let prot = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choosing touches nothing of ours.
        let page = unsafe { mmap_anonymous(None, len, prot, MapFlags::MAP_PRIVATE) };
        Self(page.expect("a page"))
    }

    pub(crate) fn write(&self, code: &[u8]) {
        assert!(code.len() <= PAGE_BYTES);
        self.protect(ProtFlags::PROT_READ | ProtFlags::PROT_WRITE);
        // SAFETY: the page is ours, writable now, and long enough.
        unsafe { self.0.as_ptr().copy_from(code.as_ptr().cast(), code.len()) };
        #[cfg(target_arch = "aarch64")]
        self.synchronise();
        self.protect(ProtFlags::PROT_READ | ProtFlags::PROT_EXEC);
    }

    /// Makes the new code visible to instruction fetches (Arm Architecture Reference Manual,
    /// "Concurrent modification and execution of instructions").
    #[cfg(target_arch = "aarch64")]
    fn synchronise(&self) {
        // SAFETY: cache maintenance of our own page, whose code fits into one line.
        unsafe {
            std::arch::asm!(
                "dc cvau, {p}", "dsb ish", "ic ivau, {p}", "dsb ish", "isb",
                p = in(reg) self.0.as_ptr()
            );
        }
    }

    pub(crate) fn call(&self) {
        // SAFETY: the page holds one of the functions above, which follow the C convention, and
        // the instruction stream was synchronised after writing it.
        let function: extern "C" fn() = unsafe { std::mem::transmute(self.0.as_ptr()) };
        function();
    }

    fn protect(&self, prot: ProtFlags) {
        // SAFETY: the page is ours, and nothing runs from it while its protection changes.
        unsafe { mprotect(self.0, PAGE_BYTES, prot) }.expect("protection");
    }
}
