//! The loops for x86_64. Each starts at the local label `2:` and ends with
//! `sub` and `jnz`. Floating point is SSE2, which every x86_64 processor has.

use core::arch::asm;

/// The instructions that every loop ends with.
macro_rules! loop_end {
    () => {
        "sub, jnz"
    };
}

/// The instruction that sets the flags for the branches of `branch_loop`.
macro_rules! flag_test {
    () => {
        "test"
    };
}

pub(super) use {flag_test, loop_end};

#[inline(never)]
pub(super) fn int_add_loop(iterations: u64) -> u64 {
    let mut sum = 0_u64;
    // SAFETY: touches the named registers and the flags only; ends because `n` starts above zero.
    unsafe {
        asm!(
            "2:",
            "add {sum}, 1", "add {sum}, 1", "add {sum}, 1", "add {sum}, 1",
            "add {sum}, 1", "add {sum}, 1", "add {sum}, 1", "add {sum}, 1",
            "sub {n}, 1",
            "jnz 2b",
            n = inout(reg) iterations => _,
            sum = inout(reg) sum,
            options(nomem, nostack),
        );
    }
    sum
}

/// Counts its additions: each adds 1.0 to one of eight sums.
#[inline(never)]
pub(super) fn fp_add_loop(iterations: u64) -> u64 {
    let mut sums = [0.0_f64; 8];
    let [a, b, c, d, e, f, g, h] = &mut sums;
    // SAFETY: touches the named registers and the flags only; ends because `n` starts above zero.
    unsafe {
        asm!(
            "2:",
            "addsd {a}, {one}", "addsd {b}, {one}", "addsd {c}, {one}", "addsd {d}, {one}",
            "addsd {e}, {one}", "addsd {f}, {one}", "addsd {g}, {one}", "addsd {h}, {one}",
            "sub {n}, 1",
            "jnz 2b",
            n = inout(reg) iterations => _,
            one = in(xmm_reg) 1.0_f64,
            a = inout(xmm_reg) *a, b = inout(xmm_reg) *b, c = inout(xmm_reg) *c,
            d = inout(xmm_reg) *d, e = inout(xmm_reg) *e, f = inout(xmm_reg) *f,
            g = inout(xmm_reg) *g, h = inout(xmm_reg) *h,
            options(nomem, nostack),
        );
    }
    sums.iter().sum::<f64>() as u64
}

/// Sums grow by 1.0 and are multiplied by 1.0.
#[inline(never)]
pub(super) fn fp_mul_loop(iterations: u64) -> u64 {
    let mut sums = [0.0_f64; 4];
    let [a, b, c, d] = &mut sums;
    // SAFETY: touches the named registers and the flags only; ends because `n` starts above zero.
    unsafe {
        asm!(
            "2:",
            "addsd {a}, {one}", "addsd {b}, {one}", "addsd {c}, {one}", "addsd {d}, {one}",
            "mulsd {a}, {one}", "mulsd {b}, {one}", "mulsd {c}, {one}", "mulsd {d}, {one}",
            "sub {n}, 1",
            "jnz 2b",
            n = inout(reg) iterations => _,
            one = in(xmm_reg) 1.0_f64,
            a = inout(xmm_reg) *a, b = inout(xmm_reg) *b,
            c = inout(xmm_reg) *c, d = inout(xmm_reg) *d,
            options(nomem, nostack),
        );
    }
    sums.iter().sum::<f64>() as u64
}

/// Counts its additions: each instruction adds 1.0 to both lanes of a sum.
#[inline(never)]
pub(super) fn fp_packed_loop(iterations: u64) -> u64 {
    let sum: u64;
    // SAFETY: touches the named registers and the flags only; ends because `n`
    // starts above zero. The lanes of xmm0 to xmm3 are added up behind the loop.
    unsafe {
        asm!(
            "unpcklpd {one}, {one}",
            "xorpd xmm0, xmm0", "xorpd xmm1, xmm1", "xorpd xmm2, xmm2", "xorpd xmm3, xmm3",
            "2:",
            "addpd xmm0, {one}", "addpd xmm1, {one}", "addpd xmm2, {one}", "addpd xmm3, {one}",
            "sub {n}, 1",
            "jnz 2b",
            "addpd xmm0, xmm1", "addpd xmm2, xmm3", "addpd xmm0, xmm2",
            "movapd xmm1, xmm0", "unpckhpd xmm1, xmm1", "addsd xmm0, xmm1",
            "cvttsd2si {sum}, xmm0",
            n = inout(reg) iterations => _,
            one = inout(xmm_reg) 1.0_f64 => _,
            sum = lateout(reg) sum,
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            options(nomem, nostack),
        );
    }
    sum
}

/// Loads 1 to 8 in every iteration; the sum shows what the last one read.
#[inline(never)]
pub(super) fn load_loop(iterations: u64) -> u64 {
    let line: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    let (a, b, c, d, e, f, g, h): (u64, u64, u64, u64, u64, u64, u64, u64);
    // SAFETY: reads the eight elements of `line`; ends because `n` starts above
    // zero. rcx, rdx, rsi, rdi, r8 to r11 are declared as outputs.
    unsafe {
        asm!(
            "2:",
            "mov rcx, [{p}]", "mov rdx, [{p} + 8]", "mov rsi, [{p} + 16]", "mov rdi, [{p} + 24]",
            "mov r8, [{p} + 32]", "mov r9, [{p} + 40]", "mov r10, [{p} + 48]", "mov r11, [{p} + 56]",
            "sub {n}, 1",
            "jnz 2b",
            n = inout(reg) iterations => _,
            p = in(reg) line.as_ptr(),
            out("rcx") a, out("rdx") b, out("rsi") c, out("rdi") d,
            out("r8") e, out("r9") f, out("r10") g, out("r11") h,
            options(readonly, nostack),
        );
    }
    a + b + c + d + e + f + g + h
}

/// Stores the counter, which is 1 in the last iteration.
#[inline(never)]
pub(super) fn store_loop(iterations: u64) -> u64 {
    let mut line = [0_u64; 8];
    // SAFETY: writes the eight elements of `line`; ends because `n` starts above zero.
    unsafe {
        asm!(
            "2:",
            "mov [{p}], {n}", "mov [{p} + 8], {n}", "mov [{p} + 16], {n}", "mov [{p} + 24], {n}",
            "mov [{p} + 32], {n}", "mov [{p} + 40], {n}", "mov [{p} + 48], {n}", "mov [{p} + 56], {n}",
            "sub {n}, 1",
            "jnz 2b",
            n = inout(reg) iterations => _,
            p = in(reg) line.as_mut_ptr(),
            options(nostack),
        );
    }
    line.iter().sum()
}

/// `n` is not zero while the loop runs, so `jz` falls through and `jnz` jumps.
/// A wrong `jz` would skip the loop's `sub` and leave `n` above zero.
#[inline(never)]
pub(super) fn branch_loop(iterations: u64) -> u64 {
    let mut n = iterations;
    // SAFETY: touches the named register and the flags only; ends because `n`
    // starts above zero and falls by one each iteration.
    unsafe {
        asm!(
            "2:",
            "test {n}, {n}",
            "jz 4f", "jz 4f", "jz 4f", "jz 4f",
            "jnz 3f", "nop", "3:", "jnz 3f", "nop", "3:", "jnz 3f", "nop", "3:", "jnz 3f", "nop", "3:",
            "sub {n}, 1",
            "jnz 2b",
            "4:",
            n = inout(reg) n,
            options(nomem, nostack),
        );
    }
    n
}
