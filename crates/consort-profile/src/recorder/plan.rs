//! Plans of blocks: what is the same each time a block is executed, so that only addresses remain
//! to be read.

use consort_ops::{Branch, Op, OpKind};

use super::sink::BlockExecution;
use super::words::{AccessWord, resolve_branch};
use crate::measure::{InstructionCounts, LocatedBranch, MemoryTouch, TouchKind, line_of};

/// Plan of a block in which every operation is executed once, in order.
#[derive(Debug, Clone)]
pub(super) struct BlockPlan {
    mix: InstructionCounts,
    lines: Vec<(u64, u64)>,
    uses: Vec<PlannedAccess>,
    branch: Option<(Op, Branch)>,
}

/// An expected access to data, without its address.
#[derive(Debug, Clone, Copy)]
struct PlannedAccess {
    /// The only valid value of [`AccessWord::form`].
    form: u64,
    bytes: u16,
    sort: TouchKind,
}

impl BlockPlan {
    /// The plan of instructions with these operations; `None` if their number is known only from
    /// execution.
    pub(super) fn from_instructions<'a>(
        instructions: impl Iterator<Item = &'a [Op]>,
    ) -> Option<Self> {
        let mut plan = Self {
            mix: InstructionCounts::default(),
            lines: Vec::new(),
            uses: Vec::new(),
            branch: None,
        };
        let all = instructions.enumerate();
        let fits = |(number, ops): (usize, &[Op])| ops.iter().all(|op| plan.add(number, op));
        { all }.all(fits).then_some(plan)
    }

    /// Adds an operation of the instruction with this number. Returns false if it cannot be
    /// planned.
    fn add(&mut self, number: usize, op: &Op) -> bool {
        // Only the last instruction may branch, because otherwise its target would not be known.
        let fits = self.branch.is_none() && self.add_use(number, op);
        self.branch = op.branch.map(|branch| (*op, branch));
        self.mix.add_op(&Op {
            branch: None,
            ..*op
        });
        if op.first {
            match self.lines.last_mut() {
                Some((last, count)) if line_of(*last) == line_of(op.address) => *count += 1,
                _ => self.lines.push((op.address, 1)),
            }
        }
        fits
    }

    /// Adds the access of an operation, if it has one. Returns false if the emulator may report it
    /// in pieces.
    fn add_use(&mut self, number: usize, op: &Op) -> bool {
        let Some(data) = op.data else { return true };
        let MemoryTouch { sort, bytes, .. } = MemoryTouch::data(op.kind, data);
        let form = AccessWord::access_form(number, u64::from(bytes), op.kind == OpKind::Store);
        self.uses
            .extend(form.map(|form| PlannedAccess { form, bytes, sort }));
        form.is_some()
    }

    /// The execution with these reported accesses, continuing at `next` if known; `None` if they
    /// are not the expected ones. `touches` is a buffer for them.
    #[inline]
    pub(super) fn match_execution<'a>(
        &'a self,
        words: &[u64],
        next: Option<u64>,
        touches: &'a mut Vec<MemoryTouch>,
    ) -> Option<BlockExecution<'a>> {
        if words.len() != self.uses.len() {
            return None;
        }
        touches.clear();
        let mut is_other = false;
        touches.extend(words.iter().zip(&self.uses).map(|(&word, expected)| {
            is_other |= AccessWord::form(word) != expected.form;
            MemoryTouch {
                address: AccessWord::address(word),
                bytes: expected.bytes,
                sort: expected.sort,
            }
        }));
        let turning = self.branch.as_ref().map(|(op, branch)| LocatedBranch {
            at: op.address,
            length: op.length,
            branch: resolve_branch(op, *branch, next),
        });
        (!is_other).then_some(BlockExecution {
            mix: &self.mix,
            lines: &self.lines,
            touches,
            turning,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::BlockTable;
    use super::super::thread_decoder::ThreadDecoder;
    use super::super::{ExecutionSink, RecordingStage};
    use super::*;

    const BLOCK: u64 = 8 << 60;

    /// Mix, and uses of memory and branches in their order.
    #[derive(Debug, Default, PartialEq)]
    struct Heard {
        mix: InstructionCounts,
        touches: Vec<MemoryTouch>,
        turnings: Vec<LocatedBranch>,
    }

    /// Records blocks as a whole, if `whole` says so.
    #[derive(Default)]
    struct Hears {
        whole: bool,
        runs: usize,
        received: Heard,
    }

    impl ExecutionSink for Hears {
        fn record_op(&mut self, _: usize, op: &Op) {
            self.received.mix.add_op(op);
            let touch = op.data.map(|data| MemoryTouch::data(op.kind, data));
            self.received.touches.extend(touch);
            let (at, length) = (op.address, op.length);
            let turning = op.branch.map(|branch| LocatedBranch { at, length, branch });
            self.received.turnings.extend(turning);
        }

        fn record_block(&mut self, _: usize, run: &BlockExecution) -> bool {
            if self.whole {
                self.runs += 1;
                self.received.mix.add_block(run.mix, run.branch());
                self.received.touches.extend(run.touches);
                self.received.turnings.extend(run.turning);
            }
            self.whole
        }

        fn enter_stage(&mut self, _: usize, _: RecordingStage, _: u64) {}
    }

    /// Blocks of one instruction each but for the first, which has three.
    fn blocks(first: [&[u8]; 3], others: &[&[u8]]) -> BlockTable {
        let mut bytes = Vec::new();
        let all = std::iter::once(&first[..]).chain(others.iter().map(std::slice::from_ref));
        for (number, code) in (0_u32..).zip(all) {
            bytes.extend(number.to_le_bytes());
            bytes.extend((code.len() as u32).to_le_bytes());
            bytes.extend((0x1000 + u64::from(number) * 0x40).to_le_bytes());
            for code in code {
                bytes.push(code.len() as u8);
                bytes.extend(*code);
            }
        }
        let mut blocks = BlockTable::default();
        blocks.add_descriptions(&bytes).unwrap();
        blocks
    }

    fn hears(whole: bool, blocks: &BlockTable, words: &[u64]) -> Hears {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut sink = Hears {
            whole,
            ..Hears::default()
        };
        let mut lane = ThreadDecoder::new(0);
        lane.decode_words(&bytes, blocks, &mut sink).unwrap();
        lane.finish(blocks, &mut sink);
        sink
    }

    #[test]
    fn whole_block_equals_its_operations() {
        // add [rax], ecx; push rbx; jne to the beginning. Then one that is atomic, and one in pieces.
        let first: [&[u8]; 3] = [&[0x01, 0x08], &[0x53], &[0x75, 0xfb]];
        let blocks = blocks(first, &[&[0xf0, 0xff, 0x00], &[0x0f, 0x10, 0x00]]);
        let (four, eight, store) = (2 << 59, 3 << 59, 1 << 62);
        let add = [four | 0x8000, store | four | 0x8000];
        let push = [1 << 50 | store | eight | 0x7ff8];
        let round = [&[BLOCK][..], &add, &push].concat();
        let update = [BLOCK | 1, store | four | 0x9000];
        let pieces = [BLOCK | 2, eight | 0xa000, eight | 0xa008];
        let words = [&round[..], &round, &update, &pieces, &round].concat();
        let whole = hears(true, &blocks, &words);
        assert_eq!(whole.runs, 3);
        let single = hears(false, &blocks, &words);
        assert_eq!(whole.received, single.received);
        assert_eq!(
            (single.received.mix.instructions, single.received.mix.taken),
            (11, 2)
        );
    }

    #[test]
    fn unexpected_accesses_are_reported_by_operations() {
        let blocks = blocks([&[0x8b, 0x08], &[0x90], &[0x90]], &[]);
        // A load that came to no access, and one of another size.
        for words in [&[BLOCK][..], &[BLOCK, 3 << 59 | 0x8000]] {
            let whole = hears(true, &blocks, words);
            assert_eq!(whole.runs, 0);
            assert_eq!(whole.received, hears(false, &blocks, words).received);
        }
    }
}
