//! Parts of operations in pairs that front ends fuse (Intel, Optimization Reference Manual, 2.3.2.1
//! and 2.4.5; Cordes, Micro fusion and addressing modes, Stack Overflow 26046634).

use consort_ops::{Fusion, Op, OpKind, Register};
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind as OperandKind, UsedMemory};

/// Marks the operations of one instruction.
pub(super) fn mark_pairs(raw: &Instruction, memory: &[UsedMemory], ops: &mut [Op]) {
    let stores = ops.iter().any(|op| op.kind == OpKind::Store);
    for at in 0..ops.len() {
        ops[at].fusion = match ops[at].kind {
            OpKind::Load if !needs_two_constants(raw) => {
                let next = ops.get(at + 1);
                let next = next.filter(|op| !matches!(op.kind, OpKind::Load | OpKind::Store));
                next.map_or(Fusion::None, |next| load_part(memory, next))
            }
            OpKind::Store if at > 0 && ops[at - 1].kind != OpKind::Load => Fusion::Result,
            OpKind::Branch => branch_part(raw),
            OpKind::Integer if !stores => comparison_part(raw),
            _ => Fusion::None,
        };
    }
}

/// True for a constant next to an address relative to the instruction: no decoder fuses these.
fn needs_two_constants(raw: &Instruction) -> bool {
    raw.is_ip_rel_memory_operand() && has_constant(raw)
}

fn has_constant(raw: &Instruction) -> bool {
    (0..raw.op_count()).any(|operand| {
        !matches!(
            raw.op_kind(operand),
            OperandKind::Register | OperandKind::Memory
        )
    })
}

fn load_part(memory: &[UsedMemory], next: &Op) -> Fusion {
    let indexed = |memory: &UsedMemory| memory.index() != iced_x86::Register::None;
    if !memory.iter().any(indexed) {
        return Fusion::Operand;
    }
    // Flags that are read count as a third operand.
    let reads = |register: &Register| next.sources.contains(&Some(*register));
    let mut written = next.targets.iter().flatten();
    let updates = written.any(|register| *register != Register::FLAGS && reads(register));
    if updates && !reads(&Register::FLAGS) {
        Fusion::IndexedUpdate
    } else {
        Fusion::Indexed
    }
}

fn comparison_part(raw: &Instruction) -> Fusion {
    let part = match raw.mnemonic() {
        Mnemonic::Cmp => Fusion::Compare,
        Mnemonic::Test => Fusion::Test,
        Mnemonic::And => Fusion::And,
        Mnemonic::Add | Mnemonic::Sub => Fusion::Add,
        Mnemonic::Inc | Mnemonic::Dec => Fusion::Increment,
        Mnemonic::Or | Mnemonic::Xor => Fusion::Logic,
        _ => return Fusion::None,
    };
    let in_memory = (0..raw.op_count()).any(|at| raw.op_kind(at) == OperandKind::Memory);
    match part {
        _ if !in_memory => part,
        Fusion::Increment | Fusion::Logic => Fusion::None,
        _ if has_constant(raw) || raw.is_ip_rel_memory_operand() => Fusion::None,
        _ => Fusion::Memory,
    }
}

fn branch_part(raw: &Instruction) -> Fusion {
    use ConditionCode::{a, ae, b, be, e, g, ge, l, le, ne, no, np, ns, o, p, s};
    if !raw.is_jcc_short_or_near() {
        return Fusion::None;
    }
    match raw.condition_code() {
        e | ne | l | ge | le | g => Fusion::OnOrder,
        b | ae | be | a => Fusion::OnCarry,
        o | no | s | ns | p | np => Fusion::OnFlag,
        ConditionCode::None => Fusion::None,
    }
}
