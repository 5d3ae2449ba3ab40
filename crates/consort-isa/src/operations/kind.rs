//! Kind of the computing part of an instruction, by its mnemonic.

use consort_ops::{Kind, Turn};
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};

use crate::Class;

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

/// Kind of the operation that computes in an instruction of `class`.
pub(super) fn of(raw: &Instruction, class: Class) -> Kind {
    let name = format!("{:?}", raw.mnemonic()).to_ascii_lowercase();
    match class {
        Class::Fp => floating(&name),
        Class::Vector => vector(name.strip_prefix('v').unwrap_or(&name)),
        Class::Load | Class::Store if touches_vectors(raw) => Kind::VectorMove,
        Class::Int | Class::Load | Class::Store => integer(raw.mnemonic()),
        Class::Branch => Kind::Branch,
        Class::Other => Kind::Other,
    }
}

fn floating(name: &str) -> Kind {
    let x87 = name.starts_with('f');
    let operation = name.strip_prefix('v').unwrap_or(name);
    let operation = operation
        .strip_prefix('f')
        .filter(|_| x87)
        .unwrap_or(operation);
    if operation.starts_with("fm") || operation.starts_with("fnm") {
        Kind::FpFused
    } else if ["div", "idiv", "sqrt", "prem"]
        .iter()
        .any(|p| operation.starts_with(p))
    {
        Kind::FpDivide
    } else if operation.starts_with("mul") || operation.starts_with("imul") {
        Kind::FpMultiply
    } else if x87 && starts_with_any(name, X87_MOVES) {
        Kind::VectorMove
    } else {
        Kind::FpAdd
    }
}

fn vector(operation: &str) -> Kind {
    if starts_with_any(operation, MOVES) {
        Kind::VectorMove
    } else {
        Kind::Vector
    }
}

fn integer(mnemonic: Mnemonic) -> Kind {
    match mnemonic {
        Mnemonic::Mul | Mnemonic::Imul | Mnemonic::Mulx => Kind::Multiply,
        Mnemonic::Div | Mnemonic::Idiv => Kind::Divide,
        _ => Kind::Integer,
    }
}

fn starts_with_any(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns true where an operand is a register of the vector side.
pub(super) fn touches_vectors(raw: &Instruction) -> bool {
    (0..raw.op_count()).any(|operand| {
        raw.op_kind(operand) == OpKind::Register
            && super::names::register(raw.op_register(operand))
                .is_some_and(consort_ops::Register::is_vector)
    })
}

/// Predictor of the instruction, if it transfers control.
pub(super) fn turn(raw: &Instruction) -> Option<Turn> {
    match raw.flow_control() {
        FlowControl::ConditionalBranch => Some(Turn::Conditional),
        FlowControl::UnconditionalBranch => Some(Turn::Jump),
        FlowControl::IndirectBranch => Some(Turn::IndirectJump),
        FlowControl::IndirectCall => Some(Turn::IndirectCall),
        FlowControl::Call => Some(Turn::Call),
        FlowControl::Return => Some(Turn::Return),
        FlowControl::Next
        | FlowControl::Interrupt
        | FlowControl::XbeginXabortXend
        | FlowControl::Exception => None,
    }
}
