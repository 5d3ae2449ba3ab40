//! Kind of the computing part of an instruction, by its mnemonic.

use consort_ops::{BranchKind, OpKind};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind as OperandKind};

use crate::InstructionClass;

/// Prefixes of operations that move, rearrange or combine bits of vector registers, without the
/// v of VEX and EVEX forms.
const MOVES: &[&str] = &[
    "mov",
    "pmov",
    "kmov",
    "punpck",
    "unpck",
    "pshuf",
    "shuf",
    "perm",
    "palignr",
    "align",
    "blend",
    "pblend",
    "insert",
    "extract",
    "pinsr",
    "pextr",
    "broadcast",
    "pbroadcast",
    "and",
    "or",
    "xor",
    "pand",
    "por",
    "pxor",
    "ptern",
    "pslldq",
    "psrldq",
    "packs",
    "packu",
    "zero",
    "expand",
    "pexpand",
    "compress",
    "pcompress",
    "lddqu",
    "maskmov",
    "pmaskmov",
];

/// x87 instructions that only move data between its registers.
const X87_MOVES: &[&str] = &["fld", "fst", "fxch", "fcmov", "ffree", "fabs", "fchs"];

pub(super) fn operation_kind(raw: &Instruction, class: InstructionClass) -> OpKind {
    let name = format!("{:?}", raw.mnemonic()).to_ascii_lowercase();
    match class {
        InstructionClass::Fp if name.contains("cvt") && joins_files(raw) => OpKind::Convert,
        InstructionClass::Fp => floating_kind(&name),
        InstructionClass::Vector if joins_files(raw) => OpKind::Cross,
        InstructionClass::Vector
            if starts_with_any(name.strip_prefix('v').unwrap_or(&name), MOVES) =>
        {
            OpKind::VectorMove
        }
        InstructionClass::Vector => vector_kind(&name),
        InstructionClass::Load | InstructionClass::Store if touches_vectors(raw) => {
            OpKind::VectorMove
        }
        InstructionClass::Int | InstructionClass::Load | InstructionClass::Store => {
            match raw.mnemonic() {
                Mnemonic::Mul | Mnemonic::Imul | Mnemonic::Mulx => OpKind::Multiply,
                Mnemonic::Div | Mnemonic::Idiv if divides_64_bits(raw) => OpKind::WideDivide,
                Mnemonic::Div | Mnemonic::Idiv => OpKind::Divide,
                Mnemonic::Popcnt
                | Mnemonic::Lzcnt
                | Mnemonic::Tzcnt
                | Mnemonic::Bsf
                | Mnemonic::Bsr
                | Mnemonic::Pdep
                | Mnemonic::Pext
                | Mnemonic::Crc32 => OpKind::Count,
                Mnemonic::Shld | Mnemonic::Shrd => OpKind::DoubleShift,
                Mnemonic::Lea if has_three_operands(raw) => OpKind::Address,
                _ => OpKind::Integer,
            }
        }
        InstructionClass::Branch => OpKind::Branch,
        InstructionClass::Other => OpKind::Other,
    }
}

fn floating_kind(name: &str) -> OpKind {
    let x87 = name.starts_with('f');
    let operation = name.strip_prefix('v').unwrap_or(name);
    let operation = operation
        .strip_prefix('f')
        .filter(|_| x87)
        .unwrap_or(operation);
    if operation.starts_with("fm") || operation.starts_with("fnm") {
        OpKind::FpFused
    } else if operation.starts_with("sqrt") {
        OpKind::SquareRoot
    } else if starts_with_any(operation, &["div", "idiv", "prem"]) {
        OpKind::FpDivide
    } else if operation.starts_with("mul") || operation.starts_with("imul") {
        OpKind::FpMultiply
    } else if x87 && starts_with_any(name, X87_MOVES) {
        OpKind::VectorMove
    } else {
        OpKind::FpAdd
    }
}

/// Kind of integer arithmetic on vector registers.
fn vector_kind(name: &str) -> OpKind {
    match name.strip_prefix('v').unwrap_or(name) {
        "pmulld" | "pmullq" => OpKind::WideVectorMultiply,
        operation if starts_with_any(operation, &["pmul", "pmadd"]) => OpKind::VectorMultiply,
        _ => OpKind::Vector,
    }
}

/// True if one operand is a general register and another a vector register.
fn joins_files(raw: &Instruction) -> bool {
    let registers = (0..raw.op_count()).filter(|&at| raw.op_kind(at) == OperandKind::Register);
    let is_general = |at| raw.op_register(at).is_gpr();
    registers.clone().any(is_general) && touches_vectors(raw)
}

fn divides_64_bits(raw: &Instruction) -> bool {
    raw.op0_register().is_gpr64() || raw.memory_size().size() == 8
}

/// True for an address of base, index and displacement, and for one that needs a displacement of
/// 0 because of its base (`isThreeOperandsLEA` and `hasInefficientLEABaseReg` of LLVM).
fn has_three_operands(raw: &Instruction) -> bool {
    use iced_x86::Register::{None, R13, RBP};
    let base = raw.memory_base().full_register();
    let both = base != None && raw.memory_index() != None;
    both && (raw.memory_displacement64() != 0 || matches!(base, RBP | R13))
}

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

pub(super) fn touches_vectors(raw: &Instruction) -> bool {
    (0..raw.op_count()).any(|operand| {
        raw.op_kind(operand) == OperandKind::Register
            && super::register(raw.op_register(operand))
                .is_some_and(consort_ops::Register::is_vector)
    })
}

/// `None` if the instruction does not transfer control.
pub(super) fn branch_kind(raw: &Instruction) -> Option<BranchKind> {
    match raw.flow_control() {
        FlowControl::ConditionalBranch => Some(BranchKind::Conditional),
        FlowControl::UnconditionalBranch => Some(BranchKind::Jump),
        FlowControl::IndirectBranch => Some(BranchKind::IndirectJump),
        FlowControl::IndirectCall => Some(BranchKind::IndirectCall),
        FlowControl::Call => Some(BranchKind::Call),
        FlowControl::Return => Some(BranchKind::Return),
        FlowControl::Next
        | FlowControl::Interrupt
        | FlowControl::XbeginXabortXend
        | FlowControl::Exception => None,
    }
}
