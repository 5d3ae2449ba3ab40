//! Recovery of x86 instruction boundaries before an address.
//!
//! Random but ordinary code is assembled, so that the true boundaries are known.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use consort_isa::{Arch, BlockFacts, CodeBytes};
use iced_x86::IcedError;
use iced_x86::code_asm::*;
use proptest::prelude::*;

const BASE: u64 = 0x40_1000;

/// Emits one instruction of the kinds that compilers emit.
fn emit(a: &mut CodeAssembler, kind: u8, value: i32) -> Result<(), IcedError> {
    match kind % 16 {
        0 => a.mov(rax, qword_ptr(rdi + value)),
        1 => a.add(rax, rcx),
        2 => a.movsd_2(xmm0, qword_ptr(rsi + rcx * 8 + value)),
        3 => a.mulsd(xmm0, xmm1),
        4 => a.lea(r9, qword_ptr(r10 + value)),
        5 => a.cmp(r12d, value),
        6 => a.mov(qword_ptr(rsp + (value & 0x78)), rbx),
        7 => a.vfmadd231pd(ymm1, ymm2, ymm3),
        8 => a.xor(edx, edx),
        9 => a.movzx(eax, byte_ptr(rbp + value)),
        10 => a.imul_3(rax, rcx, value),
        11 => a.push(r15),
        12 => a.mov(eax, value),
        13 => a.paddd(xmm4, xmm5),
        14 => a.test(al, 1),
        _ => a.mov(
            r8,
            0x1122_3344_5566_0000_u64 | u64::from(value.cast_unsigned() & 0xffff),
        ),
    }
}

/// Bytes and true boundaries of a straight run.
fn assemble(kinds: &[(u8, i32)]) -> (Vec<u8>, Vec<u64>) {
    let mut assembler = CodeAssembler::new(64).unwrap();
    for &(kind, value) in kinds {
        emit(&mut assembler, kind, value).unwrap();
    }
    assembler.ret().unwrap();
    let bytes = assembler.assemble(BASE).unwrap();
    let mut decoder = iced_x86::Decoder::with_ip(64, &bytes, BASE, 0);
    let boundaries = std::iter::from_fn(|| decoder.can_decode().then(|| decoder.decode().ip()));
    let boundaries = boundaries.collect();
    (bytes, boundaries)
}

/// The addresses found before the last instruction of the run.
fn found_before(bytes: &[u8], address: u64, anchors: &[u64]) -> Vec<u64> {
    let code = CodeBytes {
        arch: Arch::X86_64,
        bytes,
        base: BASE,
    };
    let block = BlockFacts::build(code, address, anchors).unwrap();
    let before = &block.instructions()[..block.index_of(address).unwrap()];
    before.iter().map(|i| i.address).collect()
}

proptest! {
    /// With the true boundaries known as anchors, exactly those are found, whatever else the bytes
    /// could be read as. All lie within the window: the rest of an instruction that began outside
    /// may look like a branch into the run.
    #[test]
    fn with_anchors_boundaries_are_exact(
        kinds in prop::collection::vec((any::<u8>(), any::<i32>()), 4..13),
    ) {
        let (bytes, truth) = assemble(&kinds);
        let last = truth[truth.len() - 1];
        let found = found_before(&bytes, last, &truth[..truth.len() - 1]);
        prop_assert_eq!(&found, &truth[..truth.len() - 1]);
    }
}

/// Without any anchor the nearest eight boundaries are right nearly always. The
/// draw is fixed, so the measured rate is too.
#[test]
fn without_an_anchor_the_nearest_boundaries_are_nearly_always_right() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut right, mut all) = (0, 0);
    for _ in 0..400 {
        let kinds: Vec<(u8, i32)> = (0..40)
            .map(|_| {
                let draw = next().to_le_bytes();
                (
                    draw[0],
                    i32::from_le_bytes([draw[4], draw[5], draw[6], draw[7]]),
                )
            })
            .collect();
        let (bytes, truth) = assemble(&kinds);
        let last = truth.len() - 1;
        let found = found_before(&bytes, truth[last], &[]);
        all += 8;
        right += truth[last - 8..last]
            .iter()
            .filter(|a| found.contains(a))
            .count();
    }
    let rate = f64::from(u32::try_from(right).unwrap()) / f64::from(all);
    println!("{rate:.4} of the nearest eight boundaries found");
    assert!(
        rate > 0.97,
        "{rate:.4} of the nearest eight boundaries found"
    );
}

#[test]
fn data_in_code_ends_the_block_at_the_jump_before_it() {
    // jmp rax; eight bytes of a jump table; then a block: xor eax,eax; inc rax;
    // inc rax; ret
    let bytes = [
        0xff, 0xe0, 0x10, 0xff, 0xff, 0xff, 0x40, 0xff, 0xff, 0xff, 0x31, 0xc0, 0x48, 0xff, 0xc0,
        0x48, 0xff, 0xc0, 0xc3,
    ];
    let code = CodeBytes {
        arch: Arch::X86_64,
        bytes: &bytes,
        base: BASE,
    };
    let anchors = [BASE + 10];
    let block = BlockFacts::build(code, BASE + 15, &anchors).unwrap();
    assert_eq!(block.end(), BASE + 19);
    assert!(block.index_of(BASE + 10).is_some());
    assert!(block.index_of(BASE).is_none(), "{block:?}");
}

#[test]
fn a_loop_head_starts_a_block() {
    // xor ecx,ecx; 1: add rax,[rdi+rcx]; add rcx,8; dec rsi; jne 1b
    let bytes = [
        0x31, 0xc9, 0x48, 0x03, 0x04, 0x0f, 0x48, 0x83, 0xc1, 0x08, 0x48, 0xff, 0xce, 0x75, 0xf3,
    ];
    let code = CodeBytes {
        arch: Arch::X86_64,
        bytes: &bytes,
        base: BASE,
    };
    let inside = BlockFacts::build(code, BASE + 6, &[BASE]).unwrap();
    assert_eq!((inside.start(), inside.is_loop()), (BASE + 2, true));
    let before = BlockFacts::build(code, BASE, &[]).unwrap();
    assert_eq!((before.end(), before.is_loop()), (BASE + 2, false));
}
