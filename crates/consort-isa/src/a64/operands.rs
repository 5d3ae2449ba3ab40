//! Registers that an A64 instruction reads and writes.
//!
//! disarm64 lists operands destination first. The meaning of the first operand depends on the
//! instruction: stores, comparisons and branches only read it.

use disarm64::InsnOperand;
use disarm64_defn::{InsnClass, InsnFlags, InsnOperandClass, InsnOperandKind};

use crate::{ArchRegister, MemoryUse, RegisterSet};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InstructionRegisters {
    pub(crate) reads: RegisterSet,
    pub(crate) writes: RegisterSet,
    pub(crate) address: RegisterSet,
}

/// In a base field, 31 is the stack pointer; elsewhere it is the zero register.
const STACK_POINTER: u8 = 31;

pub(crate) fn registers(
    definition: &disarm64::Insn,
    word: u32,
    memory: MemoryUse,
) -> InstructionRegisters {
    let mut registers = InstructionRegisters::default();
    for (position, operand) in definition.operands.iter().enumerate() {
        if is_memory_address(operand) {
            add_address(&mut registers, operand, word);
        } else if let Some(register) = register_of(operand, word) {
            add_operand(&mut registers, definition, memory, position, register);
        }
    }
    add_flags(&mut registers, definition);
    if definition.mnemonic.starts_with("bl") && definition.class == InsnClass::BRANCH_IMM {
        registers.writes.insert(ArchRegister::General(30));
    }
    registers
}

pub(crate) fn is_memory_address(operand: &InsnOperand) -> bool {
    use InsnOperandKind::{
        ADDR_ADRP, ADDR_PCREL9, ADDR_PCREL14, ADDR_PCREL19, ADDR_PCREL21, ADDR_PCREL26, SME_SM_ZA,
    };
    operand.class == InsnOperandClass::ADDRESS
        && !matches!(
            operand.kind,
            ADDR_ADRP
                | ADDR_PCREL9
                | ADDR_PCREL14
                | ADDR_PCREL19
                | ADDR_PCREL21
                | ADDR_PCREL26
                | SME_SM_ZA
        )
}

pub(crate) fn base_is_stack_pointer(definition: &disarm64::Insn, word: u32) -> bool {
    definition.operands.iter().any(|operand| {
        is_memory_address(operand) && !has_vector_base(operand) && field(word, 5) == STACK_POINTER
    })
}

fn add_operand(
    registers: &mut InstructionRegisters,
    definition: &disarm64::Insn,
    memory: MemoryUse,
    position: usize,
    register: ArchRegister,
) {
    let written = is_written(definition, memory, position)
        && (position == 0 || !matches!(register, ArchRegister::Mask(_)));
    if written {
        registers.writes.insert(register);
    }
    if !written || accumulates(definition) {
        registers.reads.insert(register);
    }
}

fn is_written(definition: &disarm64::Insn, memory: MemoryUse, position: usize) -> bool {
    let loads = memory.reads && !memory.writes;
    let atomic = memory.reads && memory.writes;
    match position {
        0 if definition.mnemonic.starts_with("cas") => true,
        0 => !(memory.writes || only_reads(definition)) || is_status_result(definition),
        // Atomics return the old value in their second register, load pairs fill two.
        1 => (atomic && !definition.mnemonic.starts_with("cas")) || loads,
        _ => false,
    }
}

/// Store-exclusive returns success in its first register.
fn is_status_result(definition: &disarm64::Insn) -> bool {
    definition.class == InsnClass::LDSTEXCL
        && (definition.mnemonic.starts_with("stx") || definition.mnemonic.starts_with("stlx"))
}

fn only_reads(definition: &disarm64::Insn) -> bool {
    use InsnClass::{
        BRANCH_REG, COMPBRANCH, CONDCMP_IMM, CONDCMP_REG, FLOATCCMP, FLOATCMP, TESTBRANCH,
    };
    matches!(
        definition.class,
        BRANCH_REG | COMPBRANCH | CONDCMP_IMM | CONDCMP_REG | FLOATCCMP | FLOATCMP | TESTBRANCH
    )
}

/// True if the destination is also a source.
fn accumulates(definition: &disarm64::Insn) -> bool {
    let name = definition.mnemonic;
    name.contains("mla")
        || name.contains("mls")
        || name.contains("dot")
        || ["cas", "inc", "dec", "aes", "sha"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        || matches!(name, "movk" | "ins" | "bsl" | "bit" | "bif" | "tbx" | "bfm")
        || is_destructive_sve(definition)
}

/// Predicated SVE instructions merge into their destination, so they also read it.
fn is_destructive_sve(definition: &disarm64::Insn) -> bool {
    let predicated = definition
        .operands
        .iter()
        .any(|operand| operand.class == InsnOperandClass::PRED_REG);
    let vector = definition
        .operands
        .first()
        .is_some_and(|operand| operand.class == InsnOperandClass::SVE_REG);
    predicated && vector
}

fn add_address(registers: &mut InstructionRegisters, operand: &InsnOperand, word: u32) {
    let base = if has_vector_base(operand) {
        ArchRegister::Vector(field(word, 5))
    } else {
        ArchRegister::General(field(word, 5))
    };
    registers.address.insert(base);
    if let Some(index) = index_register(operand, word) {
        registers.address.insert(index);
    }
    registers.reads = registers.reads.union(registers.address);
    if writes_base_back(operand, word) {
        registers.writes.insert(base);
    }
}

fn has_vector_base(operand: &InsnOperand) -> bool {
    operand
        .bit_fields
        .first()
        .is_some_and(|spec| spec.bitfield == disarm64_defn::InsnBitField::SVE_Zn)
}

fn index_register(operand: &InsnOperand, word: u32) -> Option<ArchRegister> {
    use disarm64_defn::InsnBitField::{Rm, SVE_Zm_16};
    let by_field = operand
        .bit_fields
        .iter()
        .find_map(|spec| match spec.bitfield {
            Rm => Some(general_register(field(word, 16))),
            SVE_Zm_16 => Some(Some(ArchRegister::Vector(field(word, 16)))),
            _ => None,
        });
    match by_field {
        Some(register) => register,
        None if operand.kind == InsnOperandKind::ADDR_REGOFF => general_register(field(word, 16)),
        None => None,
    }
}

/// Pre- and post-indexed forms: bit 23 marks them in pairs, bits 11 and 10 in single accesses (Arm
/// ARM, C4.1, loads and stores).
fn writes_base_back(operand: &InsnOperand, word: u32) -> bool {
    match operand.kind {
        InsnOperandKind::ADDR_SIMM7 => word & (1 << 23) != 0,
        InsnOperandKind::ADDR_SIMM9 => word & (1 << 10) != 0,
        InsnOperandKind::ADDR_SIMM10 => word & (1 << 11) != 0,
        InsnOperandKind::SIMD_ADDR_POST => true,
        _ => false,
    }
}

fn register_of(operand: &InsnOperand, word: u32) -> Option<ArchRegister> {
    use InsnOperandClass::{
        FP_REG, INT_REG, MODIFIED_REG, PRED_REG, SIMD_ELEMENT, SIMD_REG, SIMD_REGLIST, SISD_REG,
        SVE_REG, SVE_REGLIST,
    };
    match operand.class {
        INT_REG => general_register(register_field(operand, word)?),
        MODIFIED_REG => general_register(field(word, 16)),
        FP_REG | SIMD_REG | SIMD_ELEMENT | SISD_REG | SVE_REG | SVE_REGLIST => {
            Some(ArchRegister::Vector(register_field(operand, word)?))
        }
        SIMD_REGLIST => Some(ArchRegister::Vector(
            register_field(operand, word).unwrap_or_else(|| field(word, 0)),
        )),
        PRED_REG => Some(ArchRegister::Mask(register_field(operand, word)?)),
        _ => None,
    }
}

fn register_field(operand: &InsnOperand, word: u32) -> Option<u8> {
    let spec = operand.bit_fields.iter().find(|spec| spec.width >= 3)?;
    let mask = (1_u32 << spec.width) - 1;
    u8::try_from((word >> spec.lsb) & mask & 31).ok()
}

/// A general register. As an operand, number 31 is the zero register, or the stack pointer in a few
/// additions; neither carries a loaded value.
fn general_register(number: u8) -> Option<ArchRegister> {
    (number != STACK_POINTER).then_some(ArchRegister::General(number))
}

fn field(word: u32, lowest_bit: u32) -> u8 {
    u8::try_from((word >> lowest_bit) & 31).unwrap_or(0)
}

fn add_flags(registers: &mut InstructionRegisters, definition: &disarm64::Insn) {
    use InsnClass::{
        ADDSUB_CARRY, CONDBRANCH, CONDCMP_IMM, CONDCMP_REG, CONDSEL, FLOATCCMP, FLOATCMP, FLOATSEL,
    };
    let sets = matches!(
        definition.mnemonic,
        "adds" | "subs" | "ands" | "bics" | "adcs" | "sbcs"
    );
    let compares = matches!(
        definition.class,
        CONDCMP_IMM | CONDCMP_REG | FLOATCMP | FLOATCCMP
    );
    if sets || compares {
        registers.writes.insert(ArchRegister::Flags);
    }
    let tests = matches!(
        definition.class,
        ADDSUB_CARRY | CONDBRANCH | CONDCMP_IMM | CONDCMP_REG | CONDSEL | FLOATCCMP | FLOATSEL
    );
    if tests || definition.flags.contains(InsnFlags::IS_COND) {
        registers.reads.insert(ArchRegister::Flags);
    }
}
