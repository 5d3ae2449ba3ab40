//! The class and memory use of x86 instructions of every kind.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use consort_isa::{
    Arch, ArchRegister, FlowKind, Instruction, InstructionClass, UnitLatency, decode,
};
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
    class: InstructionClass,
    memory: &str,
    build: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>,
) {
    check_instruction(class, memory, assemble(build));
}

fn check_instruction(class: InstructionClass, memory: &str, instruction: Instruction) {
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
    check(InstructionClass::Fp, "", |a| a.addsd(xmm0, xmm1));
    check(InstructionClass::Fp, "r", |a| a.addsd(xmm0, qword_ptr(rax)));
    check(InstructionClass::Fp, "", |a| a.mulps(xmm0, xmm1));
    check(InstructionClass::Fp, "", |a| a.ucomisd(xmm0, xmm1));
    check(InstructionClass::Fp, "", |a| a.cmppd(xmm0, xmm1, 2));
    check(InstructionClass::Fp, "", |a| a.maxss(xmm0, xmm1));
    check(InstructionClass::Fp, "", |a| a.roundsd(xmm0, xmm1, 1));
    check(InstructionClass::Fp, "", |a| a.haddpd(xmm0, xmm1));
    check(InstructionClass::Fp, "", |a| a.vaddpd(ymm0, ymm1, ymm2));
    check(InstructionClass::Fp, "", |a| {
        a.vfmadd231pd(ymm0, ymm1, ymm2)
    });
    check(InstructionClass::Fp, "r", |a| {
        a.vfmadd231ps(zmm0, zmm1, zmmword_ptr(rax))
    });
    check(InstructionClass::Fp, "", |a| {
        a.vaddpd(zmm0.k1(), zmm1, zmm2)
    });
    check(InstructionClass::Fp, "", |a| a.vcmppd(k1, zmm1, zmm2, 1));
    check(InstructionClass::Fp, "", |a| a.vdpbf16ps(zmm0, zmm1, zmm2));
    check(InstructionClass::Fp, "", |a| a.vaddph(zmm0, zmm1, zmm2));
    check(InstructionClass::Fp, "", |a| a.vrndscalepd(zmm0, zmm1, 1));
    check(InstructionClass::Fp, "", |a| a.rsqrtps(xmm0, xmm1));
}

#[test]
fn conversions_are_floating_point() {
    check(InstructionClass::Fp, "", |a| a.cvtsi2sd(xmm0, rax));
    check(InstructionClass::Fp, "", |a| a.cvttsd2si(rax, xmm0));
    check(InstructionClass::Fp, "", |a| a.cvtss2sd(xmm0, xmm1));
    check(InstructionClass::Fp, "", |a| a.vcvtdq2pd(ymm0, xmm1));
    check(InstructionClass::Fp, "", |a| a.vcvtph2ps(ymm0, xmm1));
}

#[test]
fn x87_arithmetic_moves_and_control() {
    check(InstructionClass::Fp, "", |a| a.fadd_2(st0, st1));
    check(InstructionClass::Fp, "r", |a| a.fmul(qword_ptr(rax)));
    check(InstructionClass::Fp, "", CodeAssembler::fsin);
    check(InstructionClass::Fp, "", CodeAssembler::fcompp);
    check(InstructionClass::Fp, "r", |a| a.fild(dword_ptr(rax)));
    check(InstructionClass::Load, "r", |a| a.fld(qword_ptr(rax)));
    check(InstructionClass::Store, "w", |a| a.fstp(qword_ptr(rax)));
    check(InstructionClass::Fp, "", |a| a.fxch(st0, st1));
    check(InstructionClass::Fp, "", |a| a.fld(st1));
    check(InstructionClass::Other, "r", |a| a.fldcw(word_ptr(rax)));
}

#[test]
fn vector_work_that_is_not_arithmetic_on_numbers() {
    check(InstructionClass::Vector, "", |a| a.pxor(xmm0, xmm0));
    check(InstructionClass::Vector, "", |a| a.xorps(xmm0, xmm0));
    check(InstructionClass::Vector, "", |a| a.andnpd(xmm0, xmm1));
    check(InstructionClass::Vector, "", |a| a.movaps(xmm0, xmm1));
    check(InstructionClass::Vector, "", |a| a.movd(xmm0, eax));
    check(InstructionClass::Vector, "", |a| a.movq(rax, xmm0));
    check(InstructionClass::Vector, "", |a| a.movsd_2(xmm0, xmm1));
    check(InstructionClass::Vector, "", |a| a.paddd(xmm0, xmm1));
    check(InstructionClass::Vector, "r", |a| {
        a.paddd(xmm0, xmmword_ptr(rax))
    });
    check(InstructionClass::Vector, "", |a| a.pminsd(xmm0, xmm1));
    check(InstructionClass::Vector, "", |a| a.shufps(xmm0, xmm1, 1));
    check(InstructionClass::Vector, "", |a| a.unpcklpd(xmm0, xmm1));
    check(InstructionClass::Vector, "", |a| a.pmovmskb(eax, xmm1));
    check(InstructionClass::Vector, "", |a| a.vpermilpd(ymm0, ymm1, 1));
    check(InstructionClass::Vector, "", |a| {
        a.vpternlogd(zmm0, zmm1, zmm2, 1)
    });
    check(InstructionClass::Vector, "", |a| {
        a.vpdpbusd(zmm0, zmm1, zmm2)
    });
    check(InstructionClass::Vector, "", |a| a.kandw(k1, k2, k3));
    check(InstructionClass::Vector, "", CodeAssembler::vzeroupper);
    check(InstructionClass::Vector, "", |a| a.insertps(xmm0, xmm1, 1));
}

#[test]
fn cryptography_is_vector_work() {
    check(InstructionClass::Vector, "", |a| a.aesenc(xmm0, xmm1));
    check(InstructionClass::Vector, "", |a| {
        a.vaesdec(zmm0, zmm1, zmm2)
    });
    check(InstructionClass::Vector, "", |a| a.sha256rnds2(xmm1, xmm2));
    check(InstructionClass::Vector, "", |a| a.pclmulqdq(xmm0, xmm1, 0));
    check(InstructionClass::Vector, "", |a| a.gf2p8mulb(xmm0, xmm1));
}

#[test]
fn integer_work() {
    check(InstructionClass::Int, "", |a| a.add(rax, rcx));
    check(InstructionClass::Int, "r", |a| a.add(rax, qword_ptr(rcx)));
    check(InstructionClass::Int, "rw", |a| a.add(qword_ptr(rcx), rax));
    check(InstructionClass::Int, "", |a| {
        a.lea(rax, qword_ptr(rcx + rdx * 4))
    });
    check(InstructionClass::Int, "", |a| a.xor(eax, eax));
    check(InstructionClass::Int, "", |a| a.imul_2(rax, rcx));
    check(InstructionClass::Int, "", |a| a.mov(rax, rcx));
    check(InstructionClass::Int, "", |a| a.movzx(eax, cl));
    check(InstructionClass::Int, "", |a| a.cmove(rax, rcx));
    check(InstructionClass::Int, "", |a| a.popcnt(rax, rcx));
    check(InstructionClass::Int, "", |a| a.inc(rax));
    check(InstructionClass::Int, "", |a| a.crc32(eax, cl));
    check(InstructionClass::Int, "", |a| a.mulx(rax, rcx, rdx));
    check(InstructionClass::Int, "rw", |a| {
        a.lock().xadd(qword_ptr(rcx), rax)
    });
}

#[test]
fn loads_and_stores() {
    check(InstructionClass::Load, "r", |a| a.mov(rax, qword_ptr(rcx)));
    check(InstructionClass::Load, "r", |a| a.movzx(eax, byte_ptr(rcx)));
    check(InstructionClass::Load, "r", |a| a.pop(rax));
    check(InstructionClass::Load, "r", |a| {
        a.movups(xmm0, xmmword_ptr(rax))
    });
    check(InstructionClass::Load, "r", |a| {
        a.movsd_2(xmm0, qword_ptr(rax))
    });
    check(InstructionClass::Load, "r", |a| {
        a.vbroadcastsd(ymm0, qword_ptr(rax))
    });
    check(InstructionClass::Load, "r", |a| {
        a.vgatherdpd(zmm0.k1(), qword_ptr(rax + ymm1 * 8))
    });
    check(InstructionClass::Load, "r", |a| {
        a.vmovdqu64(zmm0, zmmword_ptr(rax))
    });
    check(InstructionClass::Load, "r", |a| a.prefetcht0(byte_ptr(rax)));
    check(InstructionClass::Store, "w", |a| a.mov(qword_ptr(rcx), rax));
    check(InstructionClass::Store, "w", |a| a.push(rax));
    check(InstructionClass::Store, "w", |a| {
        a.movntdq(xmmword_ptr(rax), xmm0)
    });
    check(InstructionClass::Store, "w", |a| {
        a.vmovupd(ymmword_ptr(rax), ymm0)
    });
    check(InstructionClass::Store, "w", |a| {
        a.vscatterdpd(qword_ptr(rax + ymm1 * 8).k1(), zmm2)
    });
}

#[test]
fn string_instructions_are_told_from_their_namesakes() {
    check(InstructionClass::Store, "rw", |a| a.rep().movsb());
    check(InstructionClass::Store, "w", |a| a.rep().stosq());
    check(InstructionClass::Store, "rw", CodeAssembler::movsd);
    check(InstructionClass::Load, "r", CodeAssembler::lodsb);
    check(InstructionClass::Load, "r", |a| a.repne().scasb());
    check(InstructionClass::Load, "r", |a| a.repe().cmpsb());
    check(InstructionClass::Load, "r", CodeAssembler::cmpsd);
    check(InstructionClass::Fp, "", |a| a.cmpsd_3(xmm0, xmm1, 1));
    assert!(assemble(|a| a.rep().movsb()).memory.repeats);
    assert!(!assemble(CodeAssembler::movsb).memory.repeats);
}

#[test]
fn branches() {
    check_instruction(InstructionClass::Branch, "", bytes(&[0x75, 0xfe]));
    check(InstructionClass::Branch, "", |a| a.jmp(rax));
    check(InstructionClass::Branch, "r", |a| a.jmp(qword_ptr(rax)));
    check(InstructionClass::Branch, "w", |a| a.call(rax));
    check(InstructionClass::Branch, "r", CodeAssembler::ret);
    assert_eq!(bytes(&[0x75, 0xfe]).flow, FlowKind::Conditional(Some(BASE)));
    assert_eq!(
        bytes(&[0xe8, 0, 0, 0, 0]).flow,
        FlowKind::Call(Some(BASE + 5))
    );
    assert_eq!(assemble(CodeAssembler::ret).flow, FlowKind::Return);
    assert_eq!(assemble(|a| a.call(rax)).flow, FlowKind::Call(None));
    assert_eq!(assemble(CodeAssembler::ud2).flow, FlowKind::Stop);
    assert_eq!(assemble(CodeAssembler::syscall).flow, FlowKind::Next);
}

#[test]
fn the_rest() {
    check(InstructionClass::Other, "", CodeAssembler::nop);
    check(InstructionClass::Other, "", CodeAssembler::endbr64);
    check(InstructionClass::Other, "", CodeAssembler::mfence);
    check(InstructionClass::Other, "", CodeAssembler::pause);
    check(InstructionClass::Other, "", CodeAssembler::cpuid);
    check(InstructionClass::Other, "", CodeAssembler::syscall);
    check(InstructionClass::Other, "", CodeAssembler::rdtsc);
    check_instruction(InstructionClass::Other, "", bytes(&[0xcc]));
    check_instruction(
        InstructionClass::Other,
        "",
        bytes(&[0x66, 0x0f, 0x1f, 0x44, 0, 0]),
    );
}

#[test]
fn long_units_and_serialisation() {
    assert_eq!(assemble(|a| a.div(rcx)).unit, UnitLatency::Long);
    assert_eq!(assemble(|a| a.vsqrtpd(ymm0, ymm1)).unit, UnitLatency::Long);
    assert_eq!(assemble(CodeAssembler::fsin).unit, UnitLatency::Long);
    assert_eq!(
        assemble(|a| a.addsd(xmm0, xmm1)).unit,
        UnitLatency::Pipelined
    );
    assert!(assemble(|a| a.lock().inc(qword_ptr(rax))).serialising);
    assert!(assemble(|a| a.xchg(qword_ptr(rax), rcx)).serialising);
    assert!(!assemble(|a| a.xchg(rax, rcx)).serialising);
}

#[test]
fn a_zeroing_idiom_reads_nothing() {
    let zeroing = assemble(|a| a.xor(eax, eax));
    assert!(!zeroing.reads.contains(ArchRegister::General(0)));
    assert!(zeroing.writes.contains(ArchRegister::General(0)));
    let combining = assemble(|a| a.xor(eax, ecx));
    assert!(combining.reads.contains(ArchRegister::General(0)));
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
    assert!(load.address_registers.contains(ArchRegister::General(1)));
    assert!(load.address_registers.contains(ArchRegister::General(2)));
    assert!(!load.address_registers.contains(ArchRegister::General(0)));
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
    assert_eq!((inc.len, inc.class), (1, InstructionClass::Int));
    assert!(decode(Arch::X86_64, &[0x40], BASE).is_err());
    let local = decode(Arch::X86_32, &[0x8b, 0x45, 0xf8], BASE).unwrap();
    assert!(local.memory.stack, "{local:?}");
}
