//! The code of a trace: static operations, and blocks of them.

use super::Damage;
use super::bytes::{ByteReader, put_number, put_signed};
use crate::{Access, Branch, BranchKind, Fusion, Op, OpKind, Register};

const TURNS: [BranchKind; 6] = [
    BranchKind::Conditional,
    BranchKind::Jump,
    BranchKind::Call,
    BranchKind::Return,
    BranchKind::IndirectJump,
    BranchKind::IndirectCall,
];

const FIRST: u8 = 1;
const HAS_DATA: u8 = 2;
const IS_VECTOR: u8 = 4;
const HAS_BRANCH: u8 = 8;
/// From layout 2 on.
const HAS_FUSION: u8 = 16;

/// Operations, and blocks as lists of their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TraceCode {
    pub(super) ops: Vec<Op>,
    pub(super) blocks: Vec<Vec<u32>>,
}

impl TraceCode {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_number(&mut out, self.ops.len() as u64);
        let mut before = 0;
        for op in &self.ops {
            put_signed(&mut out, op.address.wrapping_sub(before));
            before = op.address;
            put_op(&mut out, op);
        }
        put_number(&mut out, self.blocks.len() as u64);
        for block in &self.blocks {
            put_block(&mut out, block);
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        let mut reader = ByteReader::new(bytes);
        let mut code = Self::default();
        let mut address = 0_u64;
        for _ in 0..reader.read_number()? {
            address = address.wrapping_add(reader.read_signed()?);
            code.ops.push(read_op(&mut reader, address)?);
        }
        for _ in 0..reader.read_number()? {
            let block = read_block(&mut reader, code.ops.len())?;
            code.blocks.push(block);
        }
        let whole = reader.is_at_end();
        whole.then_some(code).ok_or(Damage::Excess)
    }

    /// Address of the first operation of a block.
    pub(super) fn start(&self, block: u32) -> Option<u64> {
        Some(self.op(*self.block(block)?.first()?)?.address)
    }

    pub(super) fn block(&self, number: u32) -> Option<&[u32]> {
        self.blocks.get(number as usize).map(Vec::as_slice)
    }

    pub(super) fn op(&self, number: u32) -> Option<&Op> {
        self.ops.get(number as usize)
    }
}

/// The operation without addresses and outcomes of its execution.
pub(super) fn strip_execution(op: &Op) -> Op {
    let mut bare = *op;
    if let Some(data) = &mut bare.data {
        data.address = 0;
    }
    if let Some(branch) = &mut bare.branch {
        branch.taken = false;
        branch.target = 0;
    }
    bare
}

fn put_op(out: &mut Vec<u8>, op: &Op) {
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    out.push(op.length);
    out.push(op.kind.index() as u8);
    out.push(
        flag(op.first, FIRST)
            | flag(op.data.is_some(), HAS_DATA)
            | flag(op.data.is_some_and(|data| data.is_vector), IS_VECTOR)
            | flag(op.branch.is_some(), HAS_BRANCH)
            | flag(op.fusion != Fusion::None, HAS_FUSION),
    );
    put_registers(out, &op.sources);
    put_registers(out, &op.targets);
    if let Some(data) = op.data {
        put_number(out, u64::from(data.bytes));
    }
    if let Some(branch) = op.branch {
        out.push(branch.turn as u8);
    }
    if op.fusion != Fusion::None {
        out.push(op.fusion.index() as u8);
    }
}

fn read_op(reader: &mut ByteReader, address: u64) -> Result<Op, Damage> {
    let length = reader.read_byte()?;
    let kind = OpKind::ALL.get(usize::from(reader.read_byte()?));
    let flags = reader.read_byte()?;
    Ok(Op {
        address,
        length,
        first: flags & FIRST != 0,
        kind: *kind.ok_or(Damage::Value)?,
        sources: read_registers(reader)?,
        targets: read_registers(reader)?,
        data: (flags & HAS_DATA != 0)
            .then(|| read_access(reader, flags))
            .transpose()?,
        branch: (flags & HAS_BRANCH != 0)
            .then(|| read_static_branch(reader))
            .transpose()?,
        fusion: if flags & HAS_FUSION != 0 {
            let fusion = Fusion::ALL.get(usize::from(reader.read_byte()?));
            *fusion.ok_or(Damage::Value)?
        } else {
            Fusion::None
        },
    })
}

fn put_registers(out: &mut Vec<u8>, registers: &[Option<Register>]) {
    let present = registers
        .iter()
        .zip(0_u8..)
        .filter(|(register, _)| register.is_some());
    out.push(present.fold(0, |mask, (_, place)| mask | 1 << place));
    out.extend(
        registers
            .iter()
            .flatten()
            .map(|register| register.index() as u8),
    );
}

fn read_registers<const N: usize>(
    reader: &mut ByteReader,
) -> Result<[Option<Register>; N], Damage> {
    let mask = reader.read_byte()?;
    let mut registers = [None; N];
    for (place, register) in registers.iter_mut().enumerate() {
        if mask & 1 << place != 0 {
            *register = Some(Register::from_index(reader.read_byte()?));
        }
    }
    Ok(registers)
}

fn read_access(reader: &mut ByteReader, flags: u8) -> Result<Access, Damage> {
    Ok(Access {
        address: 0,
        bytes: u16::try_from(reader.read_number()?).map_err(|_| Damage::Value)?,
        is_vector: flags & IS_VECTOR != 0,
    })
}

fn read_static_branch(reader: &mut ByteReader) -> Result<Branch, Damage> {
    let turn = TURNS.get(usize::from(reader.read_byte()?));
    Ok(Branch {
        turn: *turn.ok_or(Damage::Value)?,
        taken: false,
        target: 0,
    })
}

/// Operations of a block mostly follow each other.
fn put_block(out: &mut Vec<u8>, block: &[u32]) {
    put_number(out, block.len() as u64);
    let mut expected = 0_u64;
    for &op in block {
        put_signed(out, u64::from(op).wrapping_sub(expected));
        expected = u64::from(op) + 1;
    }
}

fn read_block(reader: &mut ByteReader, ops: usize) -> Result<Vec<u32>, Damage> {
    let count = reader.read_number()?;
    let mut block = Vec::new();
    let mut expected = 0_u64;
    for _ in 0..count {
        let op = expected.wrapping_add(reader.read_signed()?);
        if op >= ops as u64 {
            return Err(Damage::Value);
        }
        block.push(u32::try_from(op).map_err(|_| Damage::Value)?);
        expected = op + 1;
    }
    let some = !block.is_empty();
    some.then_some(block).ok_or(Damage::Value)
}
