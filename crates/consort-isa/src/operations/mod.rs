//! Micro-operations of one x86-64 instruction.
//!
//! Cracking follows what cores since about 2006 do (Fog, The microarchitecture of Intel, AMD and
//! VIA CPUs; Intel, Optimization Reference Manual, 2.1): an operand in memory is a load of its
//! own, a result in memory a store of its own. Three things of the front end are taken as done:
//!
//! - pushes, pops, calls and returns move the stack pointer without an operation, as a stack
//!   pointer tracker does, so that nothing waits for them;
//! - a register that is cleared by an operation on itself depends on nothing;
//! - writing 8 or 16 bits of a general register merges, so that it reads the rest.
//!
//! Registers of x87 are taken by their place in the stack as the instruction names it: pushes
//! and pops do not rename them. Only x86-64 is cracked.

mod fusion;
mod kind;
#[cfg(test)]
mod tests;

use consort_ops::{Access, Branch, Op, OpKind, Register};
use iced_x86::{
    Instruction, InstructionInfo, Mnemonic, OpAccess, OpKind as OperandKind, Register as X86,
    RflagsBits, UsedMemory,
};

use crate::{Arch, DecodeError, InstructionClass, x86};

/// Operations of the x86-64 instruction at the start of `bytes`, which lies at `address`.
///
/// What only execution determines is left open: addresses of data are 0, no branch is taken and no
/// branch has a target. The first operation is marked as such. Loads come before the computation,
/// stores after it, a branch comes last. Every instruction has at least one operation.
///
/// # Errors
///
/// [`DecodeError`] if the bytes are too few or not an instruction that a user program may execute.
pub fn operations(bytes: &[u8], address: u64) -> Result<Vec<Op>, DecodeError> {
    x86::with_info(Arch::X86_64, bytes, address, |raw, info| {
        let mut parts = OperationParts::new(raw, info, address);
        parts.add_loads();
        parts.add_computation();
        parts.add_stores();
        parts.add_branch();
        parts.finish()
    })
}

/// Temporary that passes the result of the computation to a store.
const RESULT: Register = Register::temporary(31);

/// Flags that stand for conditions: neither the direction of strings nor those of x87.
const CONDITIONS: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// An instruction while it is split into loads, a computation, stores and a branch.
struct OperationParts<'a> {
    raw: &'a Instruction,
    info: &'a InstructionInfo,
    class: InstructionClass,
    blank: Op,
    /// Registers that the computation reads.
    reads: Vec<Register>,
    /// Registers that the instruction writes, flags last.
    writes: Vec<Register>,
    is_vector: bool,
    ops: Vec<Op>,
}

impl<'a> OperationParts<'a> {
    fn new(raw: &'a Instruction, info: &'a InstructionInfo, address: u64) -> Self {
        let mut blank = Op::new(OpKind::Other, address);
        blank.length = u8::try_from(raw.len()).unwrap_or(15);
        blank.first = false;
        let class = x86::class_of(raw, info);
        Self {
            class,
            blank,
            reads: registers_read(raw, info),
            writes: registers_written(raw, info),
            is_vector: class == InstructionClass::Fp || kind::touches_vectors(raw),
            raw,
            info,
            ops: Vec::with_capacity(4),
        }
    }

    fn memory_operands(
        &self,
        wanted: fn(OpAccess) -> bool,
    ) -> impl Iterator<Item = &'a UsedMemory> + use<'a> {
        let used = self.info.used_memory().iter();
        used.filter(move |memory| wanted(memory.access()))
    }

    fn add_loads(&mut self) {
        if x86::is_prefetch(self.raw.mnemonic()) {
            return;
        }
        let direct = self.is_plain_load().then(|| self.writes.first().copied());
        let loaded = self.memory_operands(is_read).zip(0..);
        for (memory, number) in loaded {
            let target = direct.flatten().unwrap_or(Register::temporary(number));
            let op = self.access_op(OpKind::Load, memory);
            self.ops.push(Op {
                targets: [Some(target), None],
                ..op
            });
            // Strings move on without waiting for what they copy.
            let waits =
                !(self.raw.is_string_instruction() && self.class == InstructionClass::Store);
            if direct.is_none() && waits {
                self.reads.insert(0, target);
            }
        }
    }

    /// True if the loaded value goes to its register without a computation.
    fn is_plain_load(&self) -> bool {
        let moves = self.class == InstructionClass::Load && !self.raw.is_string_instruction();
        moves && self.writes.len() == 1 && self.reads.is_empty()
    }

    fn add_computation(&mut self) {
        if !self.computes() {
            return;
        }
        let mut op = self.blank;
        op.kind = kind::operation_kind(self.raw, self.class);
        op.sources = first_registers(&self.reads);
        op.targets = first_registers(&self.writes);
        if self.stores_result() {
            let last = self.writes.last().copied();
            op.targets = [
                Some(RESULT),
                last.filter(|&register| register == Register::FLAGS),
            ];
        }
        self.ops.push(op);
    }

    fn computes(&self) -> bool {
        match self.class {
            InstructionClass::Branch => false,
            InstructionClass::Load => !self.is_plain_load() && !self.writes.is_empty(),
            InstructionClass::Store => !self.writes.is_empty(),
            InstructionClass::Other => {
                !self.writes.is_empty() || self.info.used_memory().is_empty()
            }
            InstructionClass::Fp | InstructionClass::Vector | InstructionClass::Int => true,
        }
    }

    /// True if a store takes the result of the computation instead of an unchanged register.
    fn stores_result(&self) -> bool {
        let computed = matches!(
            self.class,
            InstructionClass::Fp | InstructionClass::Vector | InstructionClass::Int
        );
        computed && self.memory_operands(is_write).next().is_some()
    }

    fn add_stores(&mut self) {
        let stored: Vec<_> = self.memory_operands(is_write).copied().collect();
        for memory in stored {
            let mut op = self.access_op(OpKind::Store, &memory);
            let data = self.stored_data();
            let free = op.sources.iter_mut().filter(|source| source.is_none());
            for (source, register) in free.zip(data) {
                *source = Some(register);
            }
            self.ops.push(op);
        }
    }

    fn stored_data(&self) -> Vec<Register> {
        if self.stores_result() {
            return vec![RESULT];
        }
        match self.class {
            // A call stores its return address, which it knows.
            InstructionClass::Branch => Vec::new(),
            // `movs` stores what it has loaded, `stos` stores rax.
            _ if self.raw.is_string_instruction() => {
                let loads = self.memory_operands(is_read).next().is_some();
                vec![if loads {
                    Register::temporary(0)
                } else {
                    Register::general(0)
                }]
            }
            _ => self.reads.clone(),
        }
    }

    fn add_branch(&mut self) {
        if self.class != InstructionClass::Branch {
            return;
        }
        let Some(turn) = kind::branch_kind(self.raw) else {
            return;
        };
        let mut op = self.blank;
        op.kind = OpKind::Branch;
        op.sources = first_registers(&self.reads);
        op.branch = Some(Branch {
            turn,
            taken: false,
            target: 0,
        });
        // `loop` counts down a register.
        op.targets = first_registers(&self.writes);
        self.ops.push(op);
    }

    fn finish(mut self) -> Vec<Op> {
        if self.ops.is_empty() {
            self.ops.push(self.blank);
        }
        if let Some(op) = self.ops.first_mut() {
            op.first = true;
        }
        fusion::mark_pairs(self.raw, self.info.used_memory(), &mut self.ops);
        self.ops
    }

    fn access_op(&self, kind: OpKind, memory: &UsedMemory) -> Op {
        let mut op = self.blank;
        op.kind = kind;
        let address = [memory.base(), memory.index()];
        let registers: Vec<_> = address.into_iter().filter_map(register).collect();
        op.sources = first_registers(&registers);
        op.data = Some(Access {
            address: 0,
            bytes: u16::try_from(memory.memory_size().size()).unwrap_or(u16::MAX),
            is_vector: self.is_vector,
        });
        op
    }
}

/// The first registers, as many as an operation has room for.
fn first_registers<const N: usize>(registers: &[Register]) -> [Option<Register>; N] {
    let mut taken = [None; N];
    for (place, &register) in taken.iter_mut().zip(registers) {
        *place = Some(register);
    }
    taken
}

/// Registers that the computation reads, without those of addresses.
fn registers_read(raw: &Instruction, info: &InstructionInfo) -> Vec<Register> {
    if is_cleared(raw) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for used in info.used_registers() {
        let access = used.access();
        let merged = is_write(access) && merges(used.register());
        let kept = matches!(access, OpAccess::CondWrite | OpAccess::ReadCondWrite);
        if is_read(access) || merged || kept {
            let plain = merged || kept || !only_addresses(raw, info, used.register());
            let register = register(used.register()).filter(|_| plain);
            add_register(
                &mut found,
                register.filter(|_| !moves_stack(raw, used.register())),
            );
        }
    }
    if raw.rflags_read() & CONDITIONS != 0 {
        add_register(&mut found, Some(Register::FLAGS));
    }
    found
}

/// Registers that the instruction writes, flags last.
fn registers_written(raw: &Instruction, info: &InstructionInfo) -> Vec<Register> {
    let mut found = Vec::new();
    for used in info.used_registers() {
        if is_write(used.access()) && !moves_stack(raw, used.register()) {
            add_register(&mut found, register(used.register()));
        }
    }
    if raw.rflags_modified() & CONDITIONS != 0 {
        add_register(&mut found, Some(Register::FLAGS));
    }
    found
}

fn add_register(found: &mut Vec<Register>, register: Option<Register>) {
    let new = register.filter(|register| !found.contains(register));
    found.extend(new);
}

/// True if the front end moves the stack pointer, so that no operation does.
fn moves_stack(raw: &Instruction, register: iced_x86::Register) -> bool {
    let stack = register.full_register() == iced_x86::Register::RSP;
    stack && raw.is_stack_instruction() && raw.mnemonic() != Mnemonic::Leave
}

/// True if a register is read only for the address of an operand.
fn only_addresses(raw: &Instruction, info: &InstructionInfo, register: iced_x86::Register) -> bool {
    let full = register.full_register();
    let addresses = info.used_memory().iter().any(|memory| {
        memory.base().full_register() == full || memory.index().full_register() == full
    });
    let is_operand = (0..raw.op_count()).any(|operand| {
        let is_register = raw.op_kind(operand) == OperandKind::Register;
        is_register && raw.op_register(operand).full_register() == full
    });
    // String instructions also update their address registers.
    addresses && !is_operand && !raw.is_string_instruction()
}

/// True for an instruction that clears a register whatever its value was, and so depends on
/// nothing.
fn is_cleared(raw: &Instruction) -> bool {
    let name = format!("{:?}", raw.mnemonic()).to_ascii_lowercase();
    let name = name.strip_prefix('v').unwrap_or(&name);
    let clears = ["xor", "sub", "xorps", "xorpd"].contains(&name)
        || ["pxor", "psub"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
    let last = raw.op_count().saturating_sub(1);
    let same = raw.op_count() >= 2
        && raw.op_kind(last) == OperandKind::Register
        && raw.op_kind(last - 1) == OperandKind::Register
        && raw.op_register(last) == raw.op_register(last - 1);
    clears && same
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

/// Vector registers behind xmm0 to xmm31: those of x87, of MMX, and masks.
const X87: u8 = 32;
const MMX: u8 = 40;
const MASK: u8 = 48;

/// `None` for segments, the instruction pointer and the like.
pub(super) fn register(register: X86) -> Option<Register> {
    let number = u8::try_from(register.number()).ok()?;
    if register.is_gpr() {
        Some(Register::general(number))
    } else if register.is_vector_register() {
        Some(Register::vector(number))
    } else if register.is_st() {
        Some(Register::vector(X87 + number))
    } else if register.is_mm() {
        Some(Register::vector(MMX + number))
    } else if register.is_k() {
        Some(Register::vector(MASK + number))
    } else {
        None
    }
}

/// True if a write leaves the rest of the register unchanged.
pub(super) fn merges(register: X86) -> bool {
    register.is_gpr8() || register.is_gpr16()
}
