//! Registers and memory that an x86 instruction reads and writes.

use iced_x86::{InstructionInfo, OpAccess, UsedMemory};

use crate::{MemoryUse, Register, RegisterSet};

pub(crate) fn memory_use(raw: &iced_x86::Instruction, info: &InstructionInfo) -> MemoryUse {
    let used = info.used_memory();
    let prefetch = super::mnemonics::is_prefetch(raw.mnemonic());
    MemoryUse {
        reads: prefetch || used.iter().any(|memory| is_read(memory.access())),
        writes: used.iter().any(|memory| is_write(memory.access())),
        stack: !used.is_empty() && used.iter().all(is_stack),
        repeats: raw.is_string_instruction() && (raw.has_rep_prefix() || raw.has_repne_prefix()),
    }
}

pub(crate) fn registers_read(raw: &iced_x86::Instruction, info: &InstructionInfo) -> RegisterSet {
    let mut set: RegisterSet = info
        .used_registers()
        .iter()
        .filter(|used| is_read(used.access()))
        .filter_map(|used| register(used.register()))
        .collect();
    if raw.rflags_read() != 0 {
        set.insert(Register::Flags);
    }
    set
}

pub(crate) fn registers_written(
    raw: &iced_x86::Instruction,
    info: &InstructionInfo,
) -> RegisterSet {
    let mut set: RegisterSet = info
        .used_registers()
        .iter()
        .filter(|used| is_write(used.access()))
        .filter_map(|used| register(used.register()))
        .collect();
    if raw.rflags_modified() != 0 {
        set.insert(Register::Flags);
    }
    set
}

pub(crate) fn address_registers(info: &InstructionInfo) -> RegisterSet {
    info.used_memory()
        .iter()
        .flat_map(|memory| [memory.base(), memory.index()])
        .filter_map(register)
        .collect()
}

const fn is_read(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

const fn is_write(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// Through the stack pointer, or below the frame pointer: data structures are
/// reached at offsets of zero and above, local variables at negative ones.
fn is_stack(memory: &UsedMemory) -> bool {
    use iced_x86::Register::{EBP, ESP, RBP, RSP};
    match memory.base() {
        RSP | ESP => true,
        RBP => memory.displacement().cast_signed() < 0,
        EBP => is_negative_32_bit(memory.displacement()),
        _ => false,
    }
}

fn is_negative_32_bit(displacement: u64) -> bool {
    displacement & 0x8000_0000 != 0
}

fn register(register: iced_x86::Register) -> Option<Register> {
    let number = u8::try_from(register.number()).ok()?;
    if register.is_gpr() {
        Some(Register::General(number))
    } else if register.is_vector_register() {
        Some(Register::Vector(number))
    } else if register.is_k() {
        Some(Register::Mask(number))
    } else if register.is_st() || register.is_mm() {
        Some(Register::X87)
    } else {
        None
    }
}
