//! aarch64 code, AAPCS64: argument and result in `x0`.
//! Encodings from the Arm Architecture Reference Manual (DDI 0487), C6 and C7.

use super::Body;
use core::arch::asm;

pub(super) const KNOWN: bool = true;

/// Position of the word of the code of [`Body::Int`] that loads the factor.
const FACTOR_WORD: usize = 1;

/// The code of a function.
pub(super) fn encode(body: Body) -> Vec<u8> {
    let words = match body {
        Body::Int { factor } => int(factor),
        Body::Fp { addend } => fp(addend),
    };
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Overwrites the factor in the code of [`Body::Int`].
pub(super) fn patch_factor(code: &mut [u8], factor: u8) {
    let at = FACTOR_WORD * 4;
    code[at..at + 4].copy_from_slice(&load_x2(factor).to_le_bytes());
}

/// Makes stored code visible to instruction fetch: cleans the data cache to the
/// point of unification, then invalidates the instruction cache (DDI 0487,
/// B2.4.4). Steps of four bytes are never longer than a line.
pub(super) fn publish(code: &[u8]) {
    for word in code.chunks(4) {
        // SAFETY: cache maintenance by an address inside a live slice changes no data.
        unsafe { asm!("dc cvau, {0}", in(reg) word.as_ptr(), options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier changes no data.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    for word in code.chunks(4) {
        // SAFETY: as for `dc cvau`.
        unsafe { asm!("ic ivau, {0}", in(reg) word.as_ptr(), options(nostack, preserves_flags)) };
    }
    // SAFETY: barriers change no data.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// `movz x2, #factor`
fn load_x2(factor: u8) -> u32 {
    0xd280_0002 | u32::from(factor) << 5
}

fn int(factor: u8) -> Vec<u32> {
    vec![
        0xd280_0001,     // movz x1, #0
        load_x2(factor), // movz x2, #factor
        0x9b02_0021,     // madd x1, x1, x2, x0   <- loop
        0xf100_0400,     // subs x0, x0, #1
        0x54ff_ffc1,     // b.ne loop (2 words back)
        0xaa01_03e0,     // mov  x0, x1
        0xd65f_03c0,     // ret
    ]
}

/// Sums in d0 to d6, the addend in d7.
fn fp(addend: u8) -> Vec<u32> {
    let mut code = vec![
        0xd280_0001 | u32::from(addend) << 5, // movz  x1, #addend
        0x9e62_0027,                          // scvtf d7, x1
    ];
    code.extend((0..7).map(|sum| 0x2f00_e400 | sum)); // movi sum, #0
    code.extend((0..7).map(|sum| 0x1e67_2800 | sum << 5 | sum)); // fadd sum, sum, d7   <- loop
    code.extend([0xf100_0400, 0x54ff_ff01]); // subs x0, x0, #1; b.ne loop (8 words back)
    code.extend((1..7).map(|sum| 0x1e60_2800 | sum << 16)); // fadd d0, d0, sum
    code.extend([0x9e78_0000, 0xd65f_03c0]); // fcvtzs x0, d0; ret
    code
}
