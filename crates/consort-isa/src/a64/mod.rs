//! A64: decoding by disarm64, reduced to what this crate needs.
//!
//! disarm64 knows SVE, SVE2, SME and the recent scalar extensions, and gives for each instruction
//! its group and the bit fields of its operands; yaxpeax-arm 0.5, the other candidate, has no SVE.

mod class;
mod operands;

use disarm64::InsnOpcode;
use disarm64_defn::{InsnClass, InsnOperandKind};

use crate::{Arch, DecodeError, FlowKind, Instruction};

pub(crate) fn decode(bytes: &[u8], address: u64) -> Result<Instruction, DecodeError> {
    let word = match bytes {
        [a, b, c, d, ..] => u32::from_le_bytes([*a, *b, *c, *d]),
        _ => return Err(DecodeError::Truncated { address }),
    };
    let opcode = disarm64::decoder::decode(word) // `udf` is what zeros decode to: padding or data.
        .filter(|opcode| opcode.definition().mnemonic != "udf");
    let Some(opcode) = opcode else {
        let arch = Arch::Aarch64;
        return Err(DecodeError::Invalid { arch, address });
    };
    Ok(build_instruction(opcode.definition(), word, address))
}

fn build_instruction(definition: &disarm64::Insn, word: u32, address: u64) -> Instruction {
    let memory = class::memory_use(definition, word);
    let class = class::classify_instruction(definition, memory);
    let registers = operands::registers(definition, word, memory);
    Instruction {
        address,
        len: 4,
        class,
        reads: registers.reads,
        writes: registers.writes,
        address_registers: registers.address,
        memory,
        operand: None,
        advance: None,
        element_bytes: None,
        linear: None,
        unit: class::unit_of(definition.mnemonic, class),
        serialising: is_serialising(definition, memory.reads && memory.writes),
        flow: control_flow(definition, word, address),
    }
}

fn is_serialising(definition: &disarm64::Insn, reads_and_writes: bool) -> bool {
    let atomic = matches!(
        definition.class,
        InsnClass::LSE_ATOMIC | InsnClass::LSE128_ATOMIC | InsnClass::LDSTEXCL | InsnClass::THE
    );
    reads_and_writes || atomic || matches!(definition.mnemonic, "dmb" | "dsb" | "isb")
}

fn control_flow(definition: &disarm64::Insn, word: u32, address: u64) -> FlowKind {
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
