//! Flow of control behind an A64 instruction.

use disarm64_defn::{InsnClass, InsnOperandKind};

use crate::FlowKind;

pub(crate) fn control_flow(definition: &disarm64::Insn, word: u32, address: u64) -> FlowKind {
    let target = target(definition, word, address);
    match definition.class {
        InsnClass::BRANCH_IMM if definition.mnemonic == "bl" => FlowKind::Call(target),
        InsnClass::BRANCH_IMM => FlowKind::Jump(target),
        InsnClass::BRANCH_REG => register_branch_flow(definition.mnemonic),
        InsnClass::COMPBRANCH | InsnClass::CONDBRANCH | InsnClass::TESTBRANCH => {
            FlowKind::Conditional(target)
        }
        InsnClass::EXCEPTION if definition.mnemonic != "svc" => FlowKind::Stop,
        _ => FlowKind::Next,
    }
}

fn register_branch_flow(mnemonic: &str) -> FlowKind {
    if mnemonic.starts_with("blr") {
        FlowKind::Call(None)
    } else if mnemonic.starts_with("br") {
        FlowKind::Jump(None)
    } else {
        FlowKind::Return
    }
}

/// The offset fields of direct branches, in words: Arm ARM (DDI 0487), C4.1.
fn target(definition: &disarm64::Insn, word: u32, address: u64) -> Option<u64> {
    let words = definition
        .operands
        .iter()
        .find_map(|operand| match operand.kind {
            InsnOperandKind::ADDR_PCREL26 => Some(signed_field(word, 0, 26)),
            InsnOperandKind::ADDR_PCREL19 => Some(signed_field(word, 5, 19)),
            InsnOperandKind::ADDR_PCREL14 => Some(signed_field(word, 5, 14)),
            InsnOperandKind::ADDR_PCREL9 => Some(signed_field(word, 5, 9)),
            _ => None,
        })?;
    Some(address.wrapping_add_signed(words * 4))
}

fn signed_field(word: u32, lowest_bit: u32, width: u32) -> i64 {
    let shifted = (word << (32 - lowest_bit - width)).cast_signed();
    i64::from(shifted >> (32 - width))
}
