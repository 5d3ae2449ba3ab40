//! The class and memory use of x86 instructions of every kind.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use consort_isa::{Arch, Class, Flow, Instruction, Register, UnitUse, decode};
use iced_x86::IcedError;
use iced_x86::code_asm::*;

const BASE: u64 = 0x1000;

fn assemble(build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Instruction {
    let mut assembler = CodeAssembler::new(64).unwrap();
    build(&mut assembler).unwrap();
    let bytes = assembler.assemble(BASE).unwrap();
    decode(Arch::X86_64, &bytes, BASE).unwrap()
}

fn bytes(bytes: &[u8]) -> Instruction {
    decode(Arch::X86_64, bytes, BASE).unwrap()
}

/// Checks class and memory use, given as "", "r", "w" or "rw".
fn check(
    class: Class,
    memory: &str,
    build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) {
    check_instruction(class, memory, assemble(build));
}

fn check_instruction(class: Class, memory: &str, instruction: Instruction) {
    let expected = (class, memory.contains('r'), memory.contains('w'));
    let found = (
        instruction.class,
        instruction.memory.reads,
        instruction.memory.writes,
    );
    assert_eq!(found, expected, "{instruction:?}");
}

#[test]
fn floating_point_arithmetic() {
    check(Class::Fp, "", |a| a.addsd(xmm0, xmm1));
    check(Class::Fp, "r", |a| a.addsd(xmm0, qword_ptr(rax)));
    check(Class::Fp, "", |a| a.mulps(xmm0, xmm1));
    check(Class::Fp, "", |a| a.ucomisd(xmm0, xmm1));
    check(Class::Fp, "", |a| a.cmppd(xmm0, xmm1, 2));
    check(Class::Fp, "", |a| a.maxss(xmm0, xmm1));
    check(Class::Fp, "", |a| a.roundsd(xmm0, xmm1, 1));
    check(Class::Fp, "", |a| a.haddpd(xmm0, xmm1));
    check(Class::Fp, "", |a| a.vaddpd(ymm0, ymm1, ymm2));
    check(Class::Fp, "", |a| a.vfmadd231pd(ymm0, ymm1, ymm2));
    check(Class::Fp, "r", |a| {
        a.vfmadd231ps(zmm0, zmm1, zmmword_ptr(rax))
    });
    check(Class::Fp, "", |a| a.vaddpd(zmm0.k1(), zmm1, zmm2));
    check(Class::Fp, "", |a| a.vcmppd(k1, zmm1, zmm2, 1));
    check(Class::Fp, "", |a| a.vdpbf16ps(zmm0, zmm1, zmm2));
    check(Class::Fp, "", |a| a.vaddph(zmm0, zmm1, zmm2));
    check(Class::Fp, "", |a| a.vrndscalepd(zmm0, zmm1, 1));
    check(Class::Fp, "", |a| a.rsqrtps(xmm0, xmm1));
}

#[test]
fn conversions_are_floating_point() {
    check(Class::Fp, "", |a| a.cvtsi2sd(xmm0, rax));
    check(Class::Fp, "", |a| a.cvttsd2si(rax, xmm0));
    check(Class::Fp, "", |a| a.cvtss2sd(xmm0, xmm1));
    check(Class::Fp, "", |a| a.vcvtdq2pd(ymm0, xmm1));
    check(Class::Fp, "", |a| a.vcvtph2ps(ymm0, xmm1));
}

#[test]
fn x87_arithmetic_moves_and_control() {
    check(Class::Fp, "", |a| a.fadd_2(st0, st1));
    check(Class::Fp, "r", |a| a.fmul(qword_ptr(rax)));
    check(Class::Fp, "", CodeAssembler::fsin);
    check(Class::Fp, "", CodeAssembler::fcompp);
    check(Class::Fp, "r", |a| a.fild(dword_ptr(rax)));
    check(Class::Load, "r", |a| a.fld(qword_ptr(rax)));
    check(Class::Store, "w", |a| a.fstp(qword_ptr(rax)));
    check(Class::Fp, "", |a| a.fxch(st0, st1));
    check(Class::Fp, "", |a| a.fld(st1));
    check(Class::Other, "r", |a| a.fldcw(word_ptr(rax)));
}

#[test]
fn vector_work_that_is_not_arithmetic_on_numbers() {
    check(Class::Vector, "", |a| a.pxor(xmm0, xmm0));
    check(Class::Vector, "", |a| a.xorps(xmm0, xmm0));
    check(Class::Vector, "", |a| a.andnpd(xmm0, xmm1));
    check(Class::Vector, "", |a| a.movaps(xmm0, xmm1));
    check(Class::Vector, "", |a| a.movd(xmm0, eax));
    check(Class::Vector, "", |a| a.movq(rax, xmm0));
    check(Class::Vector, "", |a| a.movsd_2(xmm0, xmm1));
    check(Class::Vector, "", |a| a.paddd(xmm0, xmm1));
    check(Class::Vector, "r", |a| a.paddd(xmm0, xmmword_ptr(rax)));
    check(Class::Vector, "", |a| a.pminsd(xmm0, xmm1));
    check(Class::Vector, "", |a| a.shufps(xmm0, xmm1, 1));
    check(Class::Vector, "", |a| a.unpcklpd(xmm0, xmm1));
    check(Class::Vector, "", |a| a.pmovmskb(eax, xmm1));
    check(Class::Vector, "", |a| a.vpermilpd(ymm0, ymm1, 1));
    check(Class::Vector, "", |a| a.vpternlogd(zmm0, zmm1, zmm2, 1));
    check(Class::Vector, "", |a| a.vpdpbusd(zmm0, zmm1, zmm2));
    check(Class::Vector, "", |a| a.kandw(k1, k2, k3));
    check(Class::Vector, "", CodeAssembler::vzeroupper);
    check(Class::Vector, "", |a| a.insertps(xmm0, xmm1, 1));
}

#[test]
fn cryptography_is_vector_work() {
    check(Class::Vector, "", |a| a.aesenc(xmm0, xmm1));
    check(Class::Vector, "", |a| a.vaesdec(zmm0, zmm1, zmm2));
    check(Class::Vector, "", |a| a.sha256rnds2(xmm1, xmm2));
    check(Class::Vector, "", |a| a.pclmulqdq(xmm0, xmm1, 0));
    check(Class::Vector, "", |a| a.gf2p8mulb(xmm0, xmm1));
}

#[test]
fn integer_work() {
    check(Class::Int, "", |a| a.add(rax, rcx));
    check(Class::Int, "r", |a| a.add(rax, qword_ptr(rcx)));
    check(Class::Int, "rw", |a| a.add(qword_ptr(rcx), rax));
    check(Class::Int, "", |a| a.lea(rax, qword_ptr(rcx + rdx * 4)));
    check(Class::Int, "", |a| a.xor(eax, eax));
    check(Class::Int, "", |a| a.imul_2(rax, rcx));
    check(Class::Int, "", |a| a.mov(rax, rcx));
    check(Class::Int, "", |a| a.movzx(eax, cl));
    check(Class::Int, "", |a| a.cmove(rax, rcx));
    check(Class::Int, "", |a| a.popcnt(rax, rcx));
    check(Class::Int, "", |a| a.inc(rax));
    check(Class::Int, "", |a| a.crc32(eax, cl));
    check(Class::Int, "", |a| a.mulx(rax, rcx, rdx));
    check(Class::Int, "rw", |a| a.lock().xadd(qword_ptr(rcx), rax));
}

#[test]
fn loads_and_stores() {
    check(Class::Load, "r", |a| a.mov(rax, qword_ptr(rcx)));
    check(Class::Load, "r", |a| a.movzx(eax, byte_ptr(rcx)));
    check(Class::Load, "r", |a| a.pop(rax));
    check(Class::Load, "r", |a| a.movups(xmm0, xmmword_ptr(rax)));
    check(Class::Load, "r", |a| a.movsd_2(xmm0, qword_ptr(rax)));
    check(Class::Load, "r", |a| a.vbroadcastsd(ymm0, qword_ptr(rax)));
    check(Class::Load, "r", |a| {
        a.vgatherdpd(zmm0.k1(), qword_ptr(rax + ymm1 * 8))
    });
    check(Class::Load, "r", |a| a.vmovdqu64(zmm0, zmmword_ptr(rax)));
    check(Class::Load, "r", |a| a.prefetcht0(byte_ptr(rax)));
    check(Class::Store, "w", |a| a.mov(qword_ptr(rcx), rax));
    check(Class::Store, "w", |a| a.push(rax));
    check(Class::Store, "w", |a| a.movntdq(xmmword_ptr(rax), xmm0));
    check(Class::Store, "w", |a| a.vmovupd(ymmword_ptr(rax), ymm0));
    check(Class::Store, "w", |a| {
        a.vscatterdpd(qword_ptr(rax + ymm1 * 8).k1(), zmm2)
    });
}

#[test]
fn string_instructions_are_told_from_their_namesakes() {
    check(Class::Store, "rw", |a| a.rep().movsb());
    check(Class::Store, "w", |a| a.rep().stosq());
    check(Class::Store, "rw", CodeAssembler::movsd);
    check(Class::Load, "r", CodeAssembler::lodsb);
    check(Class::Load, "r", |a| a.repne().scasb());
    check(Class::Load, "r", |a| a.repe().cmpsb());
    check(Class::Load, "r", CodeAssembler::cmpsd);
    check(Class::Fp, "", |a| a.cmpsd_3(xmm0, xmm1, 1));
    assert!(assemble(|a| a.rep().movsb()).memory.repeats);
    assert!(!assemble(CodeAssembler::movsb).memory.repeats);
}

#[test]
fn branches() {
    check_instruction(Class::Branch, "", bytes(&[0x75, 0xfe]));
    check(Class::Branch, "", |a| a.jmp(rax));
    check(Class::Branch, "r", |a| a.jmp(qword_ptr(rax)));
    check(Class::Branch, "w", |a| a.call(rax));
    check(Class::Branch, "r", CodeAssembler::ret);
    assert_eq!(bytes(&[0x75, 0xfe]).flow, Flow::Conditional(Some(BASE)));
    assert_eq!(bytes(&[0xe8, 0, 0, 0, 0]).flow, Flow::Call(Some(BASE + 5)));
    assert_eq!(assemble(CodeAssembler::ret).flow, Flow::Return);
    assert_eq!(assemble(|a| a.call(rax)).flow, Flow::Call(None));
    assert_eq!(assemble(CodeAssembler::ud2).flow, Flow::Stop);
    assert_eq!(assemble(CodeAssembler::syscall).flow, Flow::Next);
}

#[test]
fn the_rest() {
    check(Class::Other, "", CodeAssembler::nop);
    check(Class::Other, "", CodeAssembler::endbr64);
    check(Class::Other, "", CodeAssembler::mfence);
    check(Class::Other, "", CodeAssembler::pause);
    check(Class::Other, "", CodeAssembler::cpuid);
    check(Class::Other, "", CodeAssembler::syscall);
    check(Class::Other, "", CodeAssembler::rdtsc);
    check_instruction(Class::Other, "", bytes(&[0xcc]));
    check_instruction(Class::Other, "", bytes(&[0x66, 0x0f, 0x1f, 0x44, 0, 0]));
}

#[test]
fn long_units_and_serialisation() {
    assert_eq!(assemble(|a| a.div(rcx)).unit, UnitUse::Long);
    assert_eq!(assemble(|a| a.vsqrtpd(ymm0, ymm1)).unit, UnitUse::Long);
    assert_eq!(assemble(CodeAssembler::fsin).unit, UnitUse::Long);
    assert_eq!(assemble(|a| a.addsd(xmm0, xmm1)).unit, UnitUse::Pipelined);
    assert!(assemble(|a| a.lock().inc(qword_ptr(rax))).serialising);
    assert!(assemble(|a| a.xchg(qword_ptr(rax), rcx)).serialising);
    assert!(!assemble(|a| a.xchg(rax, rcx)).serialising);
}

#[test]
fn a_zeroing_idiom_reads_nothing() {
    let zeroing = assemble(|a| a.xor(eax, eax));
    assert!(!zeroing.reads.contains(Register::General(0)));
    assert!(zeroing.writes.contains(Register::General(0)));
    let combining = assemble(|a| a.xor(eax, ecx));
    assert!(combining.reads.contains(Register::General(0)));
}

#[test]
fn stack_accesses_are_known() {
    assert!(assemble(|a| a.push(rax)).memory.stack);
    assert!(assemble(|a| a.mov(rax, qword_ptr(rsp + 8))).memory.stack);
    assert!(assemble(|a| a.mov(rax, qword_ptr(rbp - 8))).memory.stack);
    assert!(!assemble(|a| a.mov(rax, qword_ptr(rbp + 8))).memory.stack);
    assert!(!assemble(|a| a.mov(rax, qword_ptr(rdi))).memory.stack);
}

#[test]
fn registers_of_an_address_are_told_apart() {
    let load = assemble(|a| a.mov(rax, qword_ptr(rcx + rdx * 8)));
    assert!(load.address_registers.contains(Register::General(1)));
    assert!(load.address_registers.contains(Register::General(2)));
    assert!(!load.address_registers.contains(Register::General(0)));
}

#[test]
fn kernel_instructions_are_refused() {
    // hlt; in al, dx; mov cr0, rax
    for code in [&[0xf4_u8][..], &[0xec], &[0x0f, 0x22, 0xc0]] {
        assert!(decode(Arch::X86_64, code, BASE).is_err(), "{code:x?}");
    }
}

#[test]
fn thirty_two_bit_code_is_read_as_such() {
    // 0x40 is `inc eax` in 32-bit code and a prefix in 64-bit code.
    let inc = decode(Arch::X86_32, &[0x40], BASE).unwrap();
    assert_eq!((inc.len, inc.class), (1, Class::Int));
    assert!(decode(Arch::X86_64, &[0x40], BASE).is_err());
    let local = decode(Arch::X86_32, &[0x8b, 0x45, 0xf8], BASE).unwrap();
    assert!(local.memory.stack, "{local:?}");
}
