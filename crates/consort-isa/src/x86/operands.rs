//! Registers and memory that an x86 instruction reads and writes.

use iced_x86::{InstructionInfo, OpAccess, OpKind, UsedMemory};

use crate::{ArchRegister, LinearUpdate, MemoryUse, Operand, RegisterSet};

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
        set.insert(ArchRegister::Flags);
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
        set.insert(ArchRegister::Flags);
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

/// The one place in memory that 64-bit code accesses through general registers. For a repeated copy
/// it is the destination, since both places move alike.
pub(crate) fn operand(
    raw: &iced_x86::Instruction,
    info: &InstructionInfo,
    memory: MemoryUse,
) -> Option<Operand> {
    let used = match info.used_memory() {
        [used] => used,
        several if memory.repeats => several.iter().find(|used| is_write(used.access()))?,
        _ => return None,
    };
    let segment = matches!(
        used.segment(),
        iced_x86::Register::FS | iced_x86::Register::GS
    );
    if memory.stack || segment || raw.is_vsib() {
        return None;
    }
    Some(Operand {
        base: general_number(used.base())?,
        index: general_number(used.index())?,
        scale: u8::try_from(used.scale()).ok()?,
        displacement: used.displacement(),
    })
}

/// Bytes of each element of a repeated string instruction.
pub(crate) fn element_bytes(raw: &iced_x86::Instruction, memory: MemoryUse) -> Option<u8> {
    let bytes = raw.memory_size().size();
    memory.repeats.then(|| u8::try_from(bytes).ok())?
}

/// The 64-bit register that a constant is added to, and the constant.
pub(crate) fn advance(raw: &iced_x86::Instruction) -> Option<(u8, i64)> {
    use iced_x86::Mnemonic::{Add, Dec, Inc, Lea, Sub};
    let register = general_number(raw.op0_register())??;
    let constant = || {
        (raw.op1_kind() != OpKind::Register && raw.op1_kind() != OpKind::Memory)
            .then(|| raw.immediate(1).cast_signed())
    };
    let by = match raw.mnemonic() {
        Inc => 1,
        Dec => -1,
        Add => constant()?,
        Sub => constant()?.checked_neg()?,
        Lea => lea_in_place(raw)?,
        _ => return None,
    };
    Some((register, by))
}

/// Constant that `lea` adds to the register that it starts from.
fn lea_in_place(raw: &iced_x86::Instruction) -> Option<i64> {
    let alone = raw.memory_index() == iced_x86::Register::None;
    let same = raw.memory_base() == raw.op0_register();
    (alone && same).then(|| raw.memory_displacement64().cast_signed())
}

/// The general register that is computed from another by shift and addition.
pub(crate) fn linear_update(raw: &iced_x86::Instruction) -> Option<LinearUpdate> {
    use iced_x86::Mnemonic::{Lea, Mov, Shl};
    let narrow = raw.op0_register().is_gpr32();
    let of = |from: iced_x86::Register, shift: u32, add: u64| {
        Some(LinearUpdate {
            to: wide_number(raw.op0_register())?,
            from: wide_number(from)?,
            shift,
            add,
            narrow,
        })
    };
    match (raw.mnemonic(), raw.op1_kind()) {
        (Mov, OpKind::Register) => of(raw.op1_register(), 0, 0),
        (Shl, OpKind::Immediate8) => of(raw.op0_register(), u32::from(raw.immediate8()), 0),
        (Lea, _) if raw.memory_index() == iced_x86::Register::None => {
            of(raw.memory_base(), 0, raw.memory_displacement64())
        }
        (Lea, _) if raw.memory_base() == iced_x86::Register::None => {
            let shift = raw.memory_index_scale().trailing_zeros();
            of(raw.memory_index(), shift, raw.memory_displacement64())
        }
        _ => {
            let (_, by) = advance(raw)?;
            of(raw.op0_register(), 0, by.cast_unsigned())
        }
    }
}

/// The number of a register of 32 or 64 bits.
fn wide_number(register: iced_x86::Register) -> Option<u8> {
    let is_wide = register.is_gpr64() || register.is_gpr32();
    is_wide.then(|| u8::try_from(register.number()).ok())?
}

/// `Some(None)` if there is no register, `None` if it is not a 64-bit one.
fn general_number(register: iced_x86::Register) -> Option<Option<u8>> {
    if register == iced_x86::Register::None {
        return Some(None);
    }
    let number = u8::try_from(register.number()).ok()?;
    register.is_gpr64().then_some(Some(number))
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

/// True for an access through the stack pointer, or below the frame pointer: data structures are
/// reached at offsets of zero and above, local variables at negative ones.
fn is_stack(memory: &UsedMemory) -> bool {
    use iced_x86::Register::{EBP, ESP, RBP, RSP};
    match memory.base() {
        RSP | ESP => true,
        RBP => memory.displacement().cast_signed() < 0,
        // A displacement of 32 bits is not sign-extended here.
        EBP => memory.displacement() & 0x8000_0000 != 0,
        _ => false,
    }
}

fn register(register: iced_x86::Register) -> Option<ArchRegister> {
    let number = u8::try_from(register.number()).ok()?;
    if register.is_gpr() {
        Some(ArchRegister::General(number))
    } else if register.is_vector_register() {
        Some(ArchRegister::Vector(number))
    } else if register.is_k() {
        Some(ArchRegister::Mask(number))
    } else if register.is_st() || register.is_mm() {
        Some(ArchRegister::X87)
    } else {
        None
    }
}
