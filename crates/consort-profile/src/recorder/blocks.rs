//! Blocks of code as the emulator translated them, decoded into operations.

use consort_isa::operations;
use consort_ops::{Op, OpKind};

use super::ProgramRecordError;
use super::plan::BlockPlan;

const GARBLED: ProgramRecordError = ProgramRecordError::Garbled { at: "a block" };

#[derive(Debug, Clone, Default)]
pub(super) struct BlockInstruction {
    /// Number of operations of the block up to the end of this instruction.
    end: usize,
    /// True if it repeats itself, one round per execution.
    repeats: bool,
    /// For an atomic update of memory, true if it compares before it writes; `None` for other
    /// operations.
    pub(super) atomic: Option<bool>,
}

/// A block: instructions from its start to its only exit.
#[derive(Debug, Clone, Default)]
pub(super) struct CodeBlock {
    pub(super) start: u64,
    instructions: Vec<BlockInstruction>,
    /// Operations of all instructions, without what only execution determines.
    ops: Vec<Op>,
    /// Summary for the case that every execution is alike.
    pub(super) plan: Option<BlockPlan>,
}

impl CodeBlock {
    pub(super) const fn count(&self) -> usize {
        self.instructions.len()
    }

    pub(super) fn instructions(&self) -> impl Iterator<Item = (&BlockInstruction, &[Op])> {
        let mut from = 0;
        self.instructions.iter().map(move |instruction| {
            let ops = &self.ops[from..instruction.end];
            from = instruction.end;
            (instruction, ops)
        })
    }

    /// Address of the last instruction, if that repeats itself.
    pub(super) fn repeated_at(&self) -> Option<u64> {
        self.instructions.last().filter(|last| last.repeats)?;
        self.ops.last().map(|op| op.address)
    }

    /// Plans the whole block, unless an instruction in it repeats itself or is atomic.
    fn plan(&mut self) {
        let is_alike = |own: &BlockInstruction| !own.repeats && own.atomic.is_none();
        let is_alike = self.instructions.iter().all(is_alike);
        let plan = || BlockPlan::from_instructions(self.instructions().map(|(_, ops)| ops));
        self.plan = is_alike.then(plan).flatten();
    }

    fn add(&mut self, code: &[u8], address: u64) {
        self.ops.extend(decode_operations(code, address));
        self.instructions.push(BlockInstruction {
            end: self.ops.len(),
            repeats: is_repeated(code),
            atomic: parse_atomic(code),
        });
    }
}

#[derive(Debug, Default)]
pub(super) struct BlockTable(Vec<CodeBlock>);

impl BlockTable {
    pub(super) fn get(&self, number: u64) -> Option<&CodeBlock> {
        self.0.get(usize::try_from(number).ok()?)
    }

    /// Adds descriptions: number, instructions, start, and each one's length and bytes.
    pub(super) fn add_descriptions(&mut self, mut bytes: &[u8]) -> Result<(), ProgramRecordError> {
        while !bytes.is_empty() {
            let number = u32::from_le_bytes(*read_array(&mut bytes)?);
            let count = u32::from_le_bytes(*read_array(&mut bytes)?);
            let start = u64::from_le_bytes(*read_array(&mut bytes)?);
            if number as usize != self.0.len() {
                return Err(GARBLED);
            }
            self.0.push(read_block(&mut bytes, start, count)?);
        }
        Ok(())
    }
}

fn read_array<'a, const N: usize>(bytes: &mut &'a [u8]) -> Result<&'a [u8; N], ProgramRecordError> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(GARBLED)?;
    *bytes = rest;
    Ok(taken)
}

fn read_block(bytes: &mut &[u8], start: u64, count: u32) -> Result<CodeBlock, ProgramRecordError> {
    let mut address = start;
    let mut block = CodeBlock {
        start,
        ..CodeBlock::default()
    };
    for _ in 0..count {
        let [length] = *read_array(bytes)?;
        let (code, rest) = bytes.split_at_checked(usize::from(length)).ok_or(GARBLED)?;
        *bytes = rest;
        block.add(code, address);
        address += u64::from(length);
    }
    block.plan();
    Ok(block)
}

/// The operations of an instruction; the first one is marked. An instruction that cannot be decoded
/// here, although the emulator executes it, is one operation of no kind.
fn decode_operations(code: &[u8], address: u64) -> Vec<Op> {
    let unknown = || {
        let mut op = Op::new(OpKind::Other, address);
        op.length = u8::try_from(code.len()).unwrap_or(15);
        vec![op]
    };
    let mut ops = operations(code, address).unwrap_or_else(|_| unknown());
    for (number, op) in ops.iter_mut().enumerate() {
        op.first = number == 0;
    }
    ops
}

/// For an atomic update of memory, whether it compares before it writes; `None` for any other
/// instruction. An atomic update is an instruction behind a lock prefix, or an exchange with memory
/// (Intel, Software Developer's Manual, volume 2, LOCK, XCHG and CMPXCHG).
fn parse_atomic(code: &[u8]) -> Option<bool> {
    let prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let end = code.iter().position(|byte| !prefix(byte))?;
    let (prefixes, operation) = code.split_at(end);
    let exchanges = matches!(operation, [0x86 | 0x87, operands, ..] if *operands < 0xc0);
    let is_atomic = exchanges || prefixes.contains(&0xf0);
    is_atomic.then_some(matches!(operation, [0x0f, 0xb0 | 0xb1, ..]))
}

/// True for a string instruction behind a repeat prefix (Intel, Software Developer's Manual, volume
/// 2, REP/REPE/REPZ/REPNE/REPNZ).
fn is_repeated(code: &[u8]) -> bool {
    let prefix = |byte: &u8| matches!(byte, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x40..=0x4f);
    let end = code.iter().position(|byte| !prefix(byte)).unwrap_or(0);
    let (prefixes, operation) = code.split_at(end);
    let repeats = prefixes.iter().any(|byte| matches!(byte, 0xf2 | 0xf3));
    repeats && matches!(operation, [0xa4..=0xa7 | 0xaa..=0xaf])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeat_prefix_counts_on_string_instructions_only() {
        assert!(is_repeated(&[0xf3, 0xa4]));
        assert!(is_repeated(&[0xf3, 0x48, 0xab]));
        assert!(!is_repeated(&[0xa4]));
        // addss, and a return behind the prefix.
        assert!(!is_repeated(&[0xf3, 0x0f, 0x58, 0xc1]));
        assert!(!is_repeated(&[0xf3, 0xc3]));
    }

    #[test]
    fn exchange_between_registers_is_not_atomic() {
        assert_eq!(parse_atomic(&[0xf0, 0x0f, 0xb1, 0x17]), Some(true));
        assert_eq!(
            parse_atomic(&[0x64, 0xf0, 0x48, 0x0f, 0xb1, 0x17]),
            Some(true)
        );
        assert_eq!(parse_atomic(&[0xf0, 0xff, 0x0f]), Some(false));
        assert_eq!(parse_atomic(&[0x87, 0x07]), Some(false));
        // Between registers, and without the prefix.
        assert_eq!(parse_atomic(&[0x87, 0xc7]), None);
        assert_eq!(parse_atomic(&[0x0f, 0xb1, 0x17]), None);
    }

    #[test]
    fn descriptions_make_blocks() {
        let mut bytes = vec![0, 0, 0, 0, 2, 0, 0, 0];
        bytes.extend(0x1000_u64.to_le_bytes());
        bytes.extend([1, 0x90, 1, 0xc3]);
        let mut blocks = BlockTable::default();
        blocks.add_descriptions(&bytes).unwrap();
        let block = blocks.get(0).unwrap();
        let addresses = block.instructions().map(|(_, ops)| ops[0].address);
        assert!(addresses.eq([0x1000, 0x1001]));
        assert!(
            blocks.add_descriptions(&bytes).is_err(),
            "numbers do not repeat"
        );
        assert!(
            BlockTable::default()
                .add_descriptions(&bytes[..17])
                .is_err()
        );
    }
}
