use super::operations;
use consort_ops::{BranchKind, Fusion, Op, OpKind, Register};
use iced_x86::IcedError;
use iced_x86::code_asm::{
    CodeAssembler, al, byte_ptr, dword_ptr, eax, ecx, k1, qword_ptr, r8, r9, rax, rbp, rbx, rcx,
    rdi, rdx, rsi, rsp, st0, st1, xmm0, xmm1, xmm2, xmmword_ptr, ymm0, ymm1, ymm2, ymmword_ptr,
    zmm0, zmm1, zmm2,
};

const RAX: Register = Register::general(0);
const RCX: Register = Register::general(1);
const RDX: Register = Register::general(2);
const RBX: Register = Register::general(3);
const RSP: Register = Register::general(4);
const RBP: Register = Register::general(5);

const RSI: Register = Register::general(6);
const RDI: Register = Register::general(7);
const T0: Register = Register::temporary(0);
const RESULT: Register = Register::temporary(31);
const FLAGS: Register = Register::FLAGS;

fn xmm(number: u8) -> Register {
    Register::vector(number)
}

/// Operations of one assembled instruction.
fn ops(assemble: impl FnOnce(&mut CodeAssembler) -> Result<(), IcedError>) -> Vec<Op> {
    let mut assembler = CodeAssembler::new(64).unwrap();
    assemble(&mut assembler).unwrap();
    let bytes = assembler.assemble(0x1000).unwrap();
    let ops = operations(&bytes, 0x1000).unwrap();
    assert!(ops.iter().all(|op| usize::from(op.length) == bytes.len()));
    assert!(ops.iter().enumerate().all(|(i, op)| op.first == (i == 0)));
    ops
}

/// Kind, what is read, what is written.
type Told = (OpKind, Vec<Register>, Vec<Register>);

fn reported(ops: &[Op]) -> Vec<Told> {
    let of = |op: &Op| {
        let sources = op.sources.into_iter().flatten().collect();
        (op.kind, sources, op.targets.into_iter().flatten().collect())
    };
    ops.iter().map(of).collect()
}

macro_rules! check {
    ($assemble:expr; $($kind:ident [$($source:expr),*] => [$($target:expr),*]);+) => {
        assert_eq!(
            reported(&ops($assemble)),
            [$((OpKind::$kind, vec![$($source),*], vec![$($target),*])),+]
        );
    };
}

#[test]
fn moves_are_one_operation() {
    check!(|a| a.mov(rax, rcx); Integer [RCX] => [RAX]);
    check!(|a| a.mov(eax, 7); Integer [] => [RAX]);
    check!(|a| a.mov(rax, qword_ptr(rcx + rdx * 8)); Load [RCX, RDX] => [RAX]);
    check!(|a| a.movzx(eax, byte_ptr(rsi)); Load [RSI] => [RAX]);
    check!(|a| a.mov(qword_ptr(rdi + 8), rax); Store [RDI, RAX] => []);
    check!(|a| a.mov(dword_ptr(rdi), 7); Store [RDI] => []);
    check!(|a| a.movups(xmm1, xmmword_ptr(rsi)); Load [RSI] => [xmm(1)]);
    check!(|a| a.movaps(xmmword_ptr(rdi), xmm1); Store [RDI, xmm(1)] => []);
    check!(|a| a.movaps(xmm0, xmm1); VectorMove [xmm(1)] => [xmm(0)]);
    check!(|a| a.lea(rax, qword_ptr(rcx + rdx * 4)); Integer [RCX, RDX] => [RAX]);
}

#[test]
fn arithmetic_reads_and_writes_flags() {
    check!(|a| a.add(rax, rcx); Integer [RAX, RCX] => [RAX, FLAGS]);
    check!(|a| a.cmp(rax, 3); Integer [RAX] => [FLAGS]);
    check!(|a| a.adc(rax, rcx); Integer [RAX, RCX, FLAGS] => [RAX, FLAGS]);
    check!(|a| a.not(rax); Integer [RAX] => [RAX]);
    check!(|a| a.sete(al); Integer [RAX, FLAGS] => [RAX]);
    check!(|a| a.imul_2(rax, rcx); Multiply [RAX, RCX] => [RAX, FLAGS]);
    check!(|a| a.div(rcx); WideDivide [RCX, RAX, RDX] => [RAX, RDX]);
    check!(|a| a.cmove(rax, rcx); Integer [RAX, RCX, FLAGS] => [RAX]);
}

#[test]
fn memory_operands_are_separate_loads_and_stores() {
    check!(|a| a.add(rax, qword_ptr(rcx));
        Load [RCX] => [T0]; Integer [T0, RAX] => [RAX, FLAGS]);
    check!(|a| a.add(qword_ptr(rcx), rax);
        Load [RCX] => [T0]; Integer [T0, RAX] => [RESULT, FLAGS]; Store [RCX, RESULT] => []);
    check!(|a| a.cmp(qword_ptr(rcx), rax);
        Load [RCX] => [T0]; Integer [T0, RAX] => [FLAGS]);
    check!(|a| a.inc(dword_ptr(rdi));
        Load [RDI] => [T0]; Integer [T0] => [RESULT, FLAGS]; Store [RDI, RESULT] => []);
    check!(|a| a.addsd(xmm0, qword_ptr(rcx));
        Load [RCX] => [T0]; FpAdd [T0, xmm(0)] => [xmm(0)]);
}

#[test]
fn stack_pointer_moves_without_operation() {
    check!(|a| a.push(rbx); Store [RSP, RBX] => []);
    check!(|a| a.pop(rbx); Load [RSP] => [RBX]);
    check!(|a| a.call(0x2000); Store [RSP] => []; Branch [] => []);
    check!(CodeAssembler::ret; Load [RSP] => [T0]; Branch [T0] => []);
    check!(|a| a.sub(rsp, 32); Integer [RSP] => [RSP, FLAGS]);
}

#[test]
fn cleared_register_depends_on_nothing() {
    check!(|a| a.xor(ecx, ecx); Integer [] => [RCX, FLAGS]);
    check!(|a| a.pxor(xmm2, xmm2); VectorMove [] => [xmm(2)]);
    check!(|a| a.vxorps(xmm2, xmm1, xmm1); VectorMove [] => [xmm(2)]);
    check!(|a| a.xor(eax, ecx); Integer [RAX, RCX] => [RAX, FLAGS]);
}

#[test]
fn slow_operations_have_kinds_of_their_own() {
    check!(|a| a.idiv(ecx); Divide [RCX, RAX, RDX] => [RAX, RDX]);
    check!(|a| a.idiv(qword_ptr(rsi)); Load [RSI] => [T0]; WideDivide [T0, RAX, RDX] => [RAX, RDX]);
    check!(|a| a.popcnt(rax, rcx); Count [RCX] => [RAX, FLAGS]);
    check!(|a| a.lea(rax, qword_ptr(rcx + rdx * 4 + 8)); Address [RCX, RDX] => [RAX]);
    check!(|a| a.lea(rax, qword_ptr(rbp + rdx)); Address [RBP, RDX] => [RAX]);
    check!(|a| a.lea(rax, qword_ptr(rdx * 4 + 8)); Integer [RDX] => [RAX]);
    check!(|a| a.shld(rax, rcx, 3); DoubleShift [RAX, RCX] => [RAX, FLAGS]);
    check!(|a| a.cvttsd2si(rax, xmm1); Convert [xmm(1)] => [RAX]);
    check!(|a| a.vcvtsi2sd(xmm0, xmm1, rcx); Convert [xmm(1), RCX] => [xmm(0)]);
    check!(|a| a.cvtdq2pd(xmm0, xmm1); FpAdd [xmm(1)] => [xmm(0)]);
    check!(|a| a.movq(rax, xmm1); Cross [xmm(1)] => [RAX]);
    check!(|a| a.movd(xmm1, ecx); Cross [RCX] => [xmm(1)]);
    check!(|a| a.pmovmskb(eax, xmm1); Cross [xmm(1)] => [RAX]);
    check!(|a| a.movq(xmm0, xmm1); VectorMove [xmm(1)] => [xmm(0)]);
    check!(|a| a.pmulld(xmm0, xmm1); WideVectorMultiply [xmm(0), xmm(1)] => [xmm(0)]);
    check!(|a| a.pmullw(xmm0, xmm1); VectorMultiply [xmm(0), xmm(1)] => [xmm(0)]);
    check!(|a| a.sqrtsd(xmm0, xmm1); SquareRoot [xmm(0), xmm(1)] => [xmm(0)]);
}

#[test]
fn operations_know_their_parts_in_fused_pairs() {
    use Fusion::{
        Add, And, Compare, Increment, Indexed, IndexedUpdate, Memory, None, OnCarry, OnFlag,
        OnOrder, Operand, Result, Test,
    };
    macro_rules! parts {
        ($assemble:expr; $($part:ident),*) => {
            let found: Vec<_> = ops($assemble).iter().map(|op| op.fusion).collect();
            assert_eq!(found, [$($part),*]);
        };
    }
    parts!(|a| a.cmp(rax, rcx); Compare);
    parts!(|a| a.cmp(rax, 3); Compare);
    parts!(|a| a.test(eax, eax); Test);
    parts!(|a| a.and(eax, 3); And);
    parts!(|a| a.sub(rax, rcx); Add);
    parts!(|a| a.dec(ecx); Increment);
    parts!(|a| a.je(0x1010); OnOrder);
    parts!(|a| a.jae(0x1010); OnCarry);
    parts!(|a| a.js(0x1010); OnFlag);
    parts!(|a| a.jmp(0x1010); None);
    parts!(|a| a.add(rax, qword_ptr(rcx + 8)); Operand, Memory);
    parts!(|a| a.cmp(qword_ptr(rcx), 3); Operand, None);
    parts!(|a| a.add(rax, qword_ptr(rcx + rdx)); IndexedUpdate, Memory);
    parts!(|a| a.cmp(rax, qword_ptr(rcx + rdx)); Indexed, Memory);
    parts!(|a| a.adc(rax, qword_ptr(rcx + rdx)); Indexed, None);
    parts!(|a| a.addsd(xmm0, qword_ptr(rcx + rdx)); IndexedUpdate, None);
    parts!(|a| a.vaddsd(xmm0, xmm1, qword_ptr(rcx + rdx)); Indexed, None);
    parts!(|a| a.add(qword_ptr(rcx), rax); Operand, None, Result);
    parts!(|a| a.mov(qword_ptr(rcx), rax); None);
    parts!(|a| a.mov(rax, qword_ptr(rcx)); None);
    parts!(CodeAssembler::ret; Operand, None);
}

#[test]
fn floating_point_kinds_follow_units() {
    check!(|a| a.mulsd(xmm0, xmm1); FpMultiply [xmm(0), xmm(1)] => [xmm(0)]);
    check!(|a| a.divpd(xmm0, xmm1); FpDivide [xmm(0), xmm(1)] => [xmm(0)]);
    check!(|a| a.vsqrtsd(xmm0, xmm1, xmm2); SquareRoot [xmm(1), xmm(2)] => [xmm(0)]);
    check!(|a| a.vfmadd231pd(ymm0, ymm1, ymm2); FpFused [xmm(0), xmm(1), xmm(2)] => [xmm(0)]);
    check!(|a| a.ucomisd(xmm0, xmm1); FpAdd [xmm(0), xmm(1)] => [FLAGS]);
    check!(|a| a.cvttsd2si(rax, xmm1); Convert [xmm(1)] => [RAX]);
    check!(|a| a.vaddps(zmm0.k1(), zmm1, zmm2);
        FpAdd [xmm(0), xmm(1), xmm(2), Register::vector(49)] => [xmm(0)]);
}

#[test]
fn x87_computes_on_registers_of_its_own() {
    let st = |number: u8| Register::vector(32 + number);
    assert_eq!(
        reported(&ops(|a| a.fmul_2(st0, st1)))[0].0,
        OpKind::FpMultiply
    );
    assert_eq!(
        reported(&ops(|a| a.fdiv_2(st0, st1)))[0].0,
        OpKind::FpDivide
    );
    let add = &reported(&ops(|a| a.fadd_2(st0, st1)))[0];
    assert_eq!(add, &(OpKind::FpAdd, vec![st(0), st(1)], vec![st(0)]));
    assert_eq!(
        reported(&ops(|a| a.fxch(st0, st1)))[0].0,
        OpKind::VectorMove
    );
    assert_eq!(reported(&ops(|a| a.fld(qword_ptr(rax))))[0].0, OpKind::Load);
}

#[test]
fn integers_in_vectors_are_computed_or_moved() {
    check!(|a| a.paddd(xmm0, xmm1); Vector [xmm(0), xmm(1)] => [xmm(0)]);
    check!(|a| a.pcmpeqb(xmm0, xmm1); Vector [xmm(0), xmm(1)] => [xmm(0)]);
    check!(|a| a.pshufd(xmm0, xmm1, 0); VectorMove [xmm(1)] => [xmm(0)]);
    check!(|a| a.pmovmskb(eax, xmm1); Cross [xmm(1)] => [RAX]);
    check!(|a| a.movq(xmm0, rax); Cross [RAX] => [xmm(0)]);
    check!(|a| a.vpand(ymm0, ymm1, ymm2); VectorMove [xmm(1), xmm(2)] => [xmm(0)]);
    check!(|a| a.kmovw(eax, k1); Cross [Register::vector(49)] => [RAX]);
}

#[test]
fn branches_have_their_predictor() {
    let turn = |ops: Vec<Op>| ops.last().unwrap().branch.map(|branch| branch.turn);
    assert_eq!(turn(ops(|a| a.jne(0x1010))), Some(BranchKind::Conditional));
    assert_eq!(turn(ops(|a| a.jmp(0x1010))), Some(BranchKind::Jump));
    assert_eq!(turn(ops(|a| a.jmp(rax))), Some(BranchKind::IndirectJump));
    assert_eq!(turn(ops(|a| a.call(0x1010))), Some(BranchKind::Call));
    assert_eq!(turn(ops(|a| a.call(rax))), Some(BranchKind::IndirectCall));
    assert_eq!(turn(ops(CodeAssembler::ret)), Some(BranchKind::Return));
    check!(|a| a.jne(0x1010); Branch [FLAGS] => []);
    check!(|a| a.jmp(qword_ptr(rax)); Load [RAX] => [T0]; Branch [T0] => []);
    check!(|a| a.call(qword_ptr(rax));
        Load [RAX] => [T0]; Store [RSP] => []; Branch [T0] => []);
}

#[test]
fn instructions_without_unit_are_other() {
    check!(CodeAssembler::nop; Other [] => []);
    check!(CodeAssembler::mfence; Other [] => []);
    check!(|a| a.prefetcht0(byte_ptr(rax)); Other [] => []);
    assert_eq!(
        ops(CodeAssembler::syscall).last().unwrap().kind,
        OpKind::Other
    );
}

#[test]
fn strings_move_on_through_memory() {
    check!(CodeAssembler::movsq;
        Load [RSI] => [T0]; Integer [RDI, RSI] => [RDI, RSI]; Store [RDI, T0] => []);
    assert_eq!(ops(|a| a.rep().stosb())[0].kind, OpKind::Integer);
}

#[test]
fn accesses_know_their_width_and_side() {
    let access = |ops: Vec<Op>| ops.iter().find_map(|op| op.data).unwrap();
    let wide = access(ops(|a| a.vmovups(ymm0, ymmword_ptr(rax))));
    assert_eq!((wide.bytes, wide.is_vector), (32, true));
    let narrow = access(ops(|a| a.mov(byte_ptr(r8), al)));
    assert_eq!((narrow.bytes, narrow.is_vector), (1, false));
    let word = access(ops(|a| a.mov(r9, qword_ptr(rbp - 8))));
    assert_eq!((word.bytes, word.address), (8, 0));
}
