//! The class of an x86 instruction: its mnemonic first, then its operands.

use iced_x86::{CpuidFeature, FlowControl, Mnemonic, OpKind};

use super::mnemonics::{self, MnemonicKind};
use crate::{InstructionClass, MemoryUse, UnitLatency};

pub(crate) fn classify_instruction(
    raw: &iced_x86::Instruction,
    memory: MemoryUse,
) -> InstructionClass {
    if let Some(class) = flow_class(raw) {
        return class;
    }
    if raw.is_string_instruction() {
        return move_class(raw, memory);
    }
    match mnemonics::kind(raw.mnemonic()) {
        MnemonicKind::Fp => InstructionClass::Fp,
        MnemonicKind::System => InstructionClass::Other,
        MnemonicKind::Move => move_class(raw, memory),
        MnemonicKind::Operands if is_x87(raw) => InstructionClass::Fp,
        MnemonicKind::Operands if touches_vectors(raw) => InstructionClass::Vector,
        MnemonicKind::Operands => InstructionClass::Int,
    }
}

pub(crate) fn unit_of(raw: &iced_x86::Instruction, class: InstructionClass) -> UnitLatency {
    if is_long(raw.mnemonic()) {
        UnitLatency::Long
    } else if class == InstructionClass::Fp {
        UnitLatency::Pipelined
    } else {
        UnitLatency::Short
    }
}

fn flow_class(raw: &iced_x86::Instruction) -> Option<InstructionClass> {
    match raw.flow_control() {
        FlowControl::Next => None,
        FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::ConditionalBranch
        | FlowControl::Return
        | FlowControl::IndirectCall => Some(InstructionClass::Branch),
        FlowControl::Call if mnemonics::kind(raw.mnemonic()) != MnemonicKind::System => {
            Some(InstructionClass::Branch)
        }
        FlowControl::Call
        | FlowControl::Interrupt
        | FlowControl::XbeginXabortXend
        | FlowControl::Exception => Some(InstructionClass::Other),
    }
}

fn move_class(raw: &iced_x86::Instruction, memory: MemoryUse) -> InstructionClass {
    // `pop` to memory is a load with a store behind it.
    if memory.writes && raw.mnemonic() != Mnemonic::Pop {
        InstructionClass::Store
    } else if memory.reads {
        InstructionClass::Load
    } else if is_x87(raw) {
        // The x87 stack is no vector register, and shuffling it is part of computing on it.
        InstructionClass::Fp
    } else if touches_vectors(raw) {
        InstructionClass::Vector
    } else {
        InstructionClass::Int
    }
}

fn is_x87(raw: &iced_x86::Instruction) -> bool {
    raw.cpuid_features().iter().any(|feature| {
        matches!(
            feature,
            CpuidFeature::FPU
                | CpuidFeature::FPU287
                | CpuidFeature::FPU387
                | CpuidFeature::FPU387SL_ONLY
        )
    })
}

fn touches_vectors(raw: &iced_x86::Instruction) -> bool {
    let by_operand = (0..raw.op_count()).any(|operand| {
        raw.op_kind(operand) == OpKind::Register && is_vector(raw.op_register(operand))
    });
    by_operand || matches!(raw.mnemonic(), Mnemonic::Vzeroupper | Mnemonic::Vzeroall)
}

fn is_vector(register: iced_x86::Register) -> bool {
    register.is_vector_register() || register.is_k() || register.is_mm() || register.is_tmm()
}

fn is_long(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{
        Div, Divpd, Divps, Divsd, Divss, F2xm1, Fbld, Fbstp, Fcos, Fdiv, Fdivp, Fdivr, Fdivrp,
        Fidiv, Fidivr, Fpatan, Fprem, Fprem1, Fptan, Fscale, Fsin, Fsincos, Fsqrt, Fyl2x, Fyl2xp1,
        Idiv, Sqrtpd, Sqrtps, Sqrtsd, Sqrtss, Vdivpd, Vdivph, Vdivps, Vdivsd, Vdivsh, Vdivss,
        Vsqrtpd, Vsqrtph, Vsqrtps, Vsqrtsd, Vsqrtsh, Vsqrtss,
    };
    matches!(
        mnemonic,
        Div | Idiv
            | Divpd
            | Divps
            | Divsd
            | Divss
            | Vdivpd
            | Vdivph
            | Vdivps
            | Vdivsd
            | Vdivsh
            | Vdivss
            | Sqrtpd
            | Sqrtps
            | Sqrtsd
            | Sqrtss
            | Vsqrtpd
            | Vsqrtph
            | Vsqrtps
            | Vsqrtsd
            | Vsqrtsh
            | Vsqrtss
            | Fdiv
            | Fdivp
            | Fdivr
            | Fdivrp
            | Fidiv
            | Fidivr
            | Fsqrt
            | Fsin
            | Fcos
            | Fsincos
            | Fptan
            | Fpatan
            | F2xm1
            | Fyl2x
            | Fyl2xp1
            | Fprem
            | Fprem1
            | Fscale
            | Fbld
            | Fbstp
    )
}
