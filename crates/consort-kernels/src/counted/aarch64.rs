//! The loops for aarch64. Each starts at the local label `2:` and ends with
//! `subs` and `b.ne`. Floating point is the base Advanced SIMD.

use core::arch::asm;

/// The instructions that every loop ends with.
macro_rules! loop_end {
    () => {
        "subs, b.ne"
    };
}

/// The instruction that sets the flags for the branches of `branch_loop`.
macro_rules! flag_test {
    () => {
        "tst"
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
            "add {sum}, {sum}, #1", "add {sum}, {sum}, #1",
            "add {sum}, {sum}, #1", "add {sum}, {sum}, #1",
            "add {sum}, {sum}, #1", "add {sum}, {sum}, #1",
            "add {sum}, {sum}, #1", "add {sum}, {sum}, #1",
            "subs {n}, {n}, #1",
            "b.ne 2b",
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
            "fadd {a:d}, {a:d}, {one:d}", "fadd {b:d}, {b:d}, {one:d}",
            "fadd {c:d}, {c:d}, {one:d}", "fadd {d:d}, {d:d}, {one:d}",
            "fadd {e:d}, {e:d}, {one:d}", "fadd {f:d}, {f:d}, {one:d}",
            "fadd {g:d}, {g:d}, {one:d}", "fadd {h:d}, {h:d}, {one:d}",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            n = inout(reg) iterations => _,
            one = in(vreg) 1.0_f64,
            a = inout(vreg) *a, b = inout(vreg) *b, c = inout(vreg) *c, d = inout(vreg) *d,
            e = inout(vreg) *e, f = inout(vreg) *f, g = inout(vreg) *g, h = inout(vreg) *h,
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
            "fadd {a:d}, {a:d}, {one:d}", "fadd {b:d}, {b:d}, {one:d}",
            "fadd {c:d}, {c:d}, {one:d}", "fadd {d:d}, {d:d}, {one:d}",
            "fmul {a:d}, {a:d}, {one:d}", "fmul {b:d}, {b:d}, {one:d}",
            "fmul {c:d}, {c:d}, {one:d}", "fmul {d:d}, {d:d}, {one:d}",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            n = inout(reg) iterations => _,
            one = in(vreg) 1.0_f64,
            a = inout(vreg) *a, b = inout(vreg) *b, c = inout(vreg) *c, d = inout(vreg) *d,
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
    // starts above zero. The lanes of v0 to v3 are added up behind the loop.
    unsafe {
        asm!(
            "dup {one:v}.2d, {one:v}.d[0]",
            "movi v0.2d, #0", "movi v1.2d, #0", "movi v2.2d, #0", "movi v3.2d, #0",
            "2:",
            "fadd v0.2d, v0.2d, {one:v}.2d", "fadd v1.2d, v1.2d, {one:v}.2d",
            "fadd v2.2d, v2.2d, {one:v}.2d", "fadd v3.2d, v3.2d, {one:v}.2d",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            "fadd v0.2d, v0.2d, v1.2d", "fadd v2.2d, v2.2d, v3.2d", "fadd v0.2d, v0.2d, v2.2d",
            "faddp d0, v0.2d",
            "fcvtzs {sum}, d0",
            n = inout(reg) iterations => _,
            one = inout(vreg) 1.0_f64 => _,
            sum = lateout(reg) sum,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _,
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
    // zero. x2 to x9 are declared as outputs.
    unsafe {
        asm!(
            "2:",
            "ldr x2, [{p}]", "ldr x3, [{p}, #8]", "ldr x4, [{p}, #16]", "ldr x5, [{p}, #24]",
            "ldr x6, [{p}, #32]", "ldr x7, [{p}, #40]", "ldr x8, [{p}, #48]", "ldr x9, [{p}, #56]",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            n = inout(reg) iterations => _,
            p = in(reg) line.as_ptr(),
            out("x2") a, out("x3") b, out("x4") c, out("x5") d,
            out("x6") e, out("x7") f, out("x8") g, out("x9") h,
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
            "str {n}, [{p}]", "str {n}, [{p}, #8]", "str {n}, [{p}, #16]", "str {n}, [{p}, #24]",
            "str {n}, [{p}, #32]", "str {n}, [{p}, #40]", "str {n}, [{p}, #48]", "str {n}, [{p}, #56]",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            n = inout(reg) iterations => _,
            p = in(reg) line.as_mut_ptr(),
            options(nostack),
        );
    }
    line.iter().sum()
}

/// `n` is not zero while the loop runs, so `b.eq` falls through and `b.ne`
/// jumps. A wrong `b.eq` would skip the loop's `subs` and leave `n` above zero.
#[inline(never)]
pub(super) fn branch_loop(iterations: u64) -> u64 {
    let mut n = iterations;
    // SAFETY: touches the named register and the flags only; ends because `n`
    // starts above zero and falls by one each iteration.
    unsafe {
        asm!(
            "2:",
            "tst {n}, {n}",
            "b.eq 4f", "b.eq 4f", "b.eq 4f", "b.eq 4f",
            "b.ne 3f", "nop", "3:", "b.ne 3f", "nop", "3:", "b.ne 3f", "nop", "3:", "b.ne 3f", "nop", "3:",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            "4:",
            n = inout(reg) n,
            options(nomem, nostack),
        );
    }
    n
}
