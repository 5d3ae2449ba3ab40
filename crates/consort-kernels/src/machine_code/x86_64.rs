//! x86_64 code, System V calling convention: argument in `rdi`, result in `rax`.
//! Encodings from the Intel SDM, volume 2.

use super::Body;

pub(super) const KNOWN: bool = true;

/// Position of the factor's byte in the code of [`Body::Int`].
const FACTOR_AT: usize = 5;

/// The code of a function.
pub(super) fn encode(body: Body) -> Vec<u8> {
    match body {
        Body::Int { factor } => int(factor),
        Body::Fp { addend } => fp(addend),
    }
}

/// Overwrites the factor in the code of [`Body::Int`].
pub(super) fn patch_factor(code: &mut [u8], factor: u8) {
    code[FACTOR_AT] = factor;
}

/// Nothing to do: x86_64 keeps instruction fetch coherent with stores, and the
/// `mprotect` in between serialises.
pub(super) fn publish(_code: &[u8]) {}

fn int(factor: u8) -> Vec<u8> {
    vec![
        0x31, 0xc0, //             xor  eax, eax
        0x48, 0x6b, 0xc0, factor, // imul rax, rax, factor   <- loop
        0x48, 0x01, 0xf8, //       add  rax, rdi
        0x48, 0xff, 0xcf, //       dec  rdi
        0x75, 0xf4, //             jnz  loop (12 bytes back)
        0xc3, //                   ret
    ]
}

/// Sums in xmm0 to xmm6, the addend in xmm7.
fn fp(addend: u8) -> Vec<u8> {
    let mut code = vec![0x48, 0xb8]; // mov rax, imm64
    code.extend(f64::from(addend).to_bits().to_le_bytes());
    code.extend([0x66, 0x48, 0x0f, 0x6e, 0xf8]); // movq xmm7, rax
    for sum in 0..7 {
        code.extend([0x66, 0x0f, 0xef, 0xc0 | sum << 3 | sum]); // pxor sum, sum
    }
    for sum in 0..7 {
        code.extend([0xf2, 0x0f, 0x58, 0xc0 | sum << 3 | 7]); // addsd sum, xmm7   <- loop
    }
    code.extend([0x48, 0xff, 0xcf]); // dec rdi
    code.extend([0x75, 0xdf]); // jnz loop (7 * 4 + 3 + 2 = 33 bytes back)
    for sum in 1..7 {
        code.extend([0xf2, 0x0f, 0x58, 0xc0 | sum]); // addsd xmm0, sum
    }
    code.extend([0xf2, 0x48, 0x0f, 0x2c, 0xc0]); // cvttsd2si rax, xmm0
    code.push(0xc3); // ret
    code
}
