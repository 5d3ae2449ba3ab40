//! The class of an A64 instruction, by the group that the manual puts it into
//! and, inside the SIMD and SVE groups, by the regular spelling of mnemonics.

use disarm64_defn::{InsnClass, InsnOperandClass};

use super::operands;
use crate::{InstructionClass, MemoryUse, UnitLatency};

/// Mnemonics that look like floating-point arithmetic but only move data.
const FP_MOVES: &[&str] = &["fmov", "fdup", "fcpy", "fcsel"];

/// Mnemonics of integer division and of division and square root of numbers.
const LONG: &[&str] = &[
    "sdiv", "udiv", "sdivr", "udivr", "fdiv", "fdivr", "fsqrt", "fadda",
];

pub(crate) fn memory_use(definition: &disarm64::Insn, word: u32) -> MemoryUse {
    if !accesses_memory(definition) {
        return MemoryUse::default();
    }
    let (reads, writes) = direction(definition);
    MemoryUse {
        reads,
        writes,
        stack: operands::base_is_stack_pointer(definition, word),
        repeats: is_memory_copy(definition),
    }
}

pub(crate) fn classify_instruction(
    definition: &disarm64::Insn,
    memory: MemoryUse,
) -> InstructionClass {
    use InsnClass::{
        BRANCH_IMM, BRANCH_REG, COMPBRANCH, CONDBRANCH, EXCEPTION, GCS, IC_SYSTEM, LSE_ATOMIC,
        LSE128_ATOMIC, TESTBRANCH, THE,
    };
    match definition.class {
        BRANCH_IMM | BRANCH_REG | COMPBRANCH | CONDBRANCH | TESTBRANCH => InstructionClass::Branch,
        IC_SYSTEM | EXCEPTION | GCS => InstructionClass::Other,
        LSE_ATOMIC | LSE128_ATOMIC | THE if memory.reads && memory.writes => InstructionClass::Int,
        _ if memory.writes => InstructionClass::Store,
        _ if memory.reads => InstructionClass::Load,
        _ if is_fp(definition.mnemonic) => InstructionClass::Fp,
        _ if touches_vectors(definition) => InstructionClass::Vector,
        _ if is_system(definition) => InstructionClass::Other,
        _ => InstructionClass::Int,
    }
}

pub(crate) fn unit_of(mnemonic: &str, class: InstructionClass) -> UnitLatency {
    if LONG.contains(&mnemonic) {
        UnitLatency::Long
    } else if class == InstructionClass::Fp {
        UnitLatency::Pipelined
    } else {
        UnitLatency::Short
    }
}

fn is_fp(mnemonic: &str) -> bool {
    let converts = matches!(mnemonic, "scvtf" | "ucvtf" | "scvtflt" | "ucvtflt");
    let brain_float = mnemonic.starts_with("bf") && !matches!(mnemonic, "bfm");
    converts || brain_float || (mnemonic.starts_with('f') && !FP_MOVES.contains(&mnemonic))
}

fn is_system(definition: &disarm64::Insn) -> bool {
    matches!(
        definition.class,
        InsnClass::AARCH64_MISC | InsnClass::SME_START | InsnClass::SME_STOP
    ) && definition.operands.len() < 2
}

fn touches_vectors(definition: &disarm64::Insn) -> bool {
    use InsnOperandClass::{
        FP_REG, PRED_REG, SIMD_ELEMENT, SIMD_REG, SIMD_REGLIST, SISD_REG, SVE_REG, SVE_REGLIST,
        ZA_ACCESS,
    };
    definition.operands.iter().any(|operand| {
        matches!(
            operand.class,
            FP_REG
                | PRED_REG
                | SIMD_ELEMENT
                | SIMD_REG
                | SIMD_REGLIST
                | SISD_REG
                | SVE_REG
                | SVE_REGLIST
                | ZA_ACCESS
        )
    })
}

fn accesses_memory(definition: &disarm64::Insn) -> bool {
    let addressed = definition.operands.iter().any(operands::is_memory_address);
    let literal = definition.class == InsnClass::LOADLIT;
    let computes_address = matches!(definition.mnemonic, "adr" | "adrp");
    literal || is_memory_copy(definition) || (addressed && !computes_address)
}

/// The `cpy*` and `set*` instructions of FEAT_MOPS.
fn is_memory_copy(definition: &disarm64::Insn) -> bool {
    let name = definition.mnemonic;
    definition.class == InsnClass::AARCH64_MISC
        && (name.starts_with("cpy") || (name.starts_with("set") && name.len() >= 4))
}

/// True if the instruction reads memory, and true if it writes memory.
fn direction(definition: &disarm64::Insn) -> (bool, bool) {
    let name = definition.mnemonic;
    let atomic = matches!(
        definition.class,
        InsnClass::LSE_ATOMIC | InsnClass::LSE128_ATOMIC | InsnClass::THE
    );
    if atomic && !name.starts_with("ld64") && !name.starts_with("st64") {
        return (true, true);
    }
    let writes = name.starts_with("st") || name.starts_with("set");
    let copies = name.starts_with("cpy");
    (!writes, writes || copies)
}
