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
        InstructionClass::Fp => floating_kind(&name),
        InstructionClass::Vector
            if starts_with_any(name.strip_prefix('v').unwrap_or(&name), MOVES) =>
        {
            OpKind::VectorMove
        }
        InstructionClass::Vector => OpKind::Vector,
        InstructionClass::Load | InstructionClass::Store if touches_vectors(raw) => {
            OpKind::VectorMove
        }
        InstructionClass::Int | InstructionClass::Load | InstructionClass::Store => {
            match raw.mnemonic() {
                Mnemonic::Mul | Mnemonic::Imul | Mnemonic::Mulx => OpKind::Multiply,
                Mnemonic::Div | Mnemonic::Idiv => OpKind::Divide,
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
    } else if ["div", "idiv", "sqrt", "prem"]
        .iter()
        .any(|p| operation.starts_with(p))
    {
        OpKind::FpDivide
    } else if operation.starts_with("mul") || operation.starts_with("imul") {
        OpKind::FpMultiply
    } else if x87 && starts_with_any(name, X87_MOVES) {
        OpKind::VectorMove
    } else {
        OpKind::FpAdd
    }
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
