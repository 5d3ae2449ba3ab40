//! x86: decoding by iced-x86, reduced to what this crate needs.

mod class;
mod mnemonics;
mod operands;

pub(crate) use mnemonics::is_prefetch;

use iced_x86::{
    Decoder, DecoderError, DecoderOptions, FlowControl, InstructionInfo, InstructionInfoFactory,
    OpKind,
};

use std::cell::RefCell;

use crate::instruction::InstructionStep;
use crate::{Arch, DecodeError, FlowKind, Instruction, InstructionClass};

thread_local! {
    /// Scratch space: a factory allocates, and there is one decode per instruction of every
    /// new block.
    static FACTORY: RefCell<InstructionInfoFactory> = RefCell::new(InstructionInfoFactory::new());
}

pub(crate) fn decode(arch: Arch, bytes: &[u8], address: u64) -> Result<Instruction, DecodeError> {
    with_info(arch, bytes, address, |raw, info| {
        build_instruction(raw, info, address)
    })
}

/// Calls `with` with the x86 instruction at the start of `bytes` and the registers and memory that
/// it uses.
pub(crate) fn with_info<T>(
    arch: Arch,
    bytes: &[u8],
    address: u64,
    with: impl FnOnce(&iced_x86::Instruction, &InstructionInfo) -> T,
) -> Result<T, DecodeError> {
    let raw = decode_next(&mut decoder(arch, bytes, address)).map_err(|error| match error {
        DecoderError::NoMoreBytes => DecodeError::Truncated { address },
        _ => DecodeError::Invalid { arch, address },
    })?;
    Ok(FACTORY.with_borrow_mut(|factory| with(&raw, factory.info(&raw))))
}

pub(crate) fn class_of(raw: &iced_x86::Instruction, info: &InstructionInfo) -> InstructionClass {
    class::classify_instruction(raw, operands::memory_use(raw, info))
}

fn build_instruction(
    raw: &iced_x86::Instruction,
    info: &InstructionInfo,
    address: u64,
) -> Instruction {
    let memory = operands::memory_use(raw, info);
    let class = class::classify_instruction(raw, memory);
    Instruction {
        address,
        len: u8::try_from(raw.len()).unwrap_or(15),
        class,
        reads: operands::registers_read(raw, info),
        writes: operands::registers_written(raw, info),
        address_registers: operands::address_registers(info),
        memory,
        operand: operands::operand(raw, info, memory),
        advance: operands::advance(raw),
        element_bytes: operands::element_bytes(raw, memory),
        linear: operands::linear_update(raw),
        unit: class::unit_of(raw, class),
        serialising: is_serialising(raw, memory.writes),
        flow: flow_of(raw, class),
    }
}

/// Lengths and branch targets of instructions at any offset of the same bytes. One decoder is
/// reused, because making one costs as much as decoding an instruction.
pub(crate) struct X86Steps<'a> {
    decoder: Decoder<'a>,
    base: u64,
}

impl<'a> X86Steps<'a> {
    pub(crate) fn new(arch: Arch, bytes: &'a [u8], base: u64) -> Self {
        let decoder = decoder(arch, bytes, base);
        Self { decoder, base }
    }

    pub(crate) fn step_at(&mut self, offset: usize) -> Option<InstructionStep> {
        self.decoder.set_position(offset).ok()?;
        self.decoder.set_ip(self.base + offset as u64);
        let raw = decode_next(&mut self.decoder).ok()?;
        Some(InstructionStep {
            len: raw.len(),
            target: direct_target(&raw),
        })
    }
}

fn decoder(arch: Arch, bytes: &[u8], address: u64) -> Decoder<'_> {
    let bitness = if arch == Arch::X86_32 { 32 } else { 64 };
    Decoder::with_ip(bitness, bytes, address, DecoderOptions::NONE)
}

/// Decodes the next instruction; one that no user program may execute is invalid.
fn decode_next(decoder: &mut Decoder<'_>) -> Result<iced_x86::Instruction, DecoderError> {
    let raw = decoder.decode();
    match decoder.last_error() {
        // Instructions that only the kernel may execute are data in a user program.
        DecoderError::None if !raw.is_privileged() => Ok(raw),
        DecoderError::None => Err(DecoderError::InvalidInstruction),
        error => Err(error),
    }
}

fn is_serialising(raw: &iced_x86::Instruction, writes_memory: bool) -> bool {
    use iced_x86::Mnemonic::{
        Cpuid, Lfence, Mfence, Rdtscp, Serialize, Sfence, Syscall, Sysenter, Xchg,
    };
    raw.has_lock_prefix()
        || (raw.mnemonic() == Xchg && writes_memory)
        || matches!(
            raw.mnemonic(),
            Cpuid | Lfence | Mfence | Sfence | Rdtscp | Serialize | Syscall | Sysenter
        )
}

fn flow_of(raw: &iced_x86::Instruction, class: InstructionClass) -> FlowKind {
    let target = direct_target(raw);
    match raw.flow_control() {
        FlowControl::Next => FlowKind::Next,
        FlowControl::ConditionalBranch => FlowKind::Conditional(target),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => FlowKind::Jump(target),
        // System calls return to the next instruction.
        FlowControl::Call | FlowControl::IndirectCall if class == InstructionClass::Branch => {
            FlowKind::Call(target)
        }
        FlowControl::Return => FlowKind::Return,
        FlowControl::Exception => FlowKind::Stop,
        // `int` is a system call, which returns; other interrupts are traps.
        FlowControl::Interrupt if raw.mnemonic() != iced_x86::Mnemonic::Int => FlowKind::Stop,
        FlowControl::Call
        | FlowControl::IndirectCall
        | FlowControl::Interrupt
        | FlowControl::XbeginXabortXend => FlowKind::Next,
    }
}

fn direct_target(raw: &iced_x86::Instruction) -> Option<u64> {
    let near = [
        OpKind::NearBranch16,
        OpKind::NearBranch32,
        OpKind::NearBranch64,
    ];
    (raw.op_count() > 0 && near.contains(&raw.op0_kind())).then(|| raw.near_branch_target())
}
