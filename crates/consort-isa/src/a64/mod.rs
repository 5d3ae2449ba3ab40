//! A64: decoding by disarm64, reduced to what this crate needs.
//!
//! disarm64 knows SVE, SVE2, SME and the recent scalar extensions, and gives for
//! each instruction its group and the bit fields of its operands;
//! yaxpeax-arm 0.5, the other candidate, has no SVE.

mod class;
mod flow;
mod operands;

use disarm64::InsnOpcode;
use disarm64_defn::InsnClass;

use crate::{Arch, DecodeError, Instruction};

/// Decodes one A64 instruction.
pub(crate) fn decode(bytes: &[u8], address: u64) -> Result<Instruction, DecodeError> {
    let word = match bytes {
        [a, b, c, d, ..] => u32::from_le_bytes([*a, *b, *c, *d]),
        _ => return Err(DecodeError::Truncated { address }),
    };
    let opcode = disarm64::decoder::decode(word).filter(|opcode| !is_forbidden(opcode));
    let Some(opcode) = opcode else {
        let arch = Arch::Aarch64;
        return Err(DecodeError::Invalid { arch, address });
    };
    Ok(build_instruction(opcode.definition(), word, address))
}

/// `udf` is what zeros decode to: padding or data.
fn is_forbidden(opcode: &impl InsnOpcode) -> bool {
    opcode.definition().mnemonic == "udf"
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
        flow: flow::control_flow(definition, word, address),
    }
}

fn is_serialising(definition: &disarm64::Insn, reads_and_writes: bool) -> bool {
    let atomic = matches!(
        definition.class,
        InsnClass::LSE_ATOMIC | InsnClass::LSE128_ATOMIC | InsnClass::LDSTEXCL | InsnClass::THE
    );
    reads_and_writes || atomic || matches!(definition.mnemonic, "dmb" | "dsb" | "isb")
}
