//! Decoding of one thread's words into operations.

use consort_ops::Op;

use super::ProgramRecordError;
use super::blocks::{BlockTable, CodeBlock};
use super::sink::{AtomicUpdate, ExecutionSink, RecordingStage, SystemCall};
use super::words::{AccessWord, locate_data, resolve_branch, words};
use crate::measure::MemoryTouch;

const LOW_60: u64 = (1 << 60) - 1;

/// A thread whose last block waits for the address at which execution continues.
#[derive(Debug)]
pub(super) struct ThreadDecoder {
    thread: usize,
    /// Number of the block that is being executed.
    block: Option<u64>,
    words: Vec<u64>,
    /// Buffers for the same as accesses, and in short form.
    accesses: Vec<AccessWord>,
    touches: Vec<MemoryTouch>,
    /// Address of the repeated instruction with which the block before ended.
    repeated: Option<u64>,
    received: u64,
    /// A system call whose arguments are not complete yet.
    call: SystemCall,
    arguments: usize,
}

impl ThreadDecoder {
    pub(super) const fn new(thread: usize) -> Self {
        Self {
            thread,
            block: None,
            words: Vec::new(),
            accesses: Vec::new(),
            touches: Vec::new(),
            repeated: None,
            received: 0,
            call: SystemCall {
                number: 0,
                arguments: [0; 3],
            },
            arguments: 0,
        }
    }

    pub(super) const fn instruction_count(&self) -> u64 {
        self.received
    }

    pub(super) fn decode_words(
        &mut self,
        bytes: &[u8],
        blocks: &BlockTable,
        sink: &mut dyn ExecutionSink,
    ) -> Result<(), ProgramRecordError> {
        for word in words(bytes) {
            match word >> 60 {
                8 => self.enter_block(word & LOW_60, blocks, sink)?,
                9 => self.change_stage(word, blocks, sink)?,
                10 => {
                    self.call.number = word & LOW_60;
                    self.arguments = 0;
                }
                11 => self.add_argument(word & LOW_60, sink),
                12 => sink.record_thread_count(self.thread, word & LOW_60),
                _ => self.words.push(word),
            }
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, blocks: &BlockTable, sink: &mut dyn ExecutionSink) {
        self.emit_block(blocks, None, sink);
    }

    fn add_argument(&mut self, value: u64, sink: &mut dyn ExecutionSink) {
        if let Some(argument) = self.call.arguments.get_mut(self.arguments) {
            *argument = value;
            self.arguments += 1;
        }
        if self.arguments == self.call.arguments.len() {
            sink.record_system_call(self.thread, &self.call);
        }
    }

    fn enter_block(
        &mut self,
        number: u64,
        blocks: &BlockTable,
        sink: &mut dyn ExecutionSink,
    ) -> Result<(), ProgramRecordError> {
        let garbled = ProgramRecordError::Garbled { at: "an execution" };
        let block = blocks.get(number).ok_or(garbled)?;
        self.emit_block(blocks, Some(block.start), sink);
        self.block = Some(number);
        self.words.clear();
        Ok(())
    }

    fn change_stage(
        &mut self,
        word: u64,
        blocks: &BlockTable,
        sink: &mut dyn ExecutionSink,
    ) -> Result<(), ProgramRecordError> {
        let stage = match word >> 56 & 0xf {
            0 => RecordingStage::Skip,
            1 => RecordingStage::Warm,
            2 => RecordingStage::Window,
            _ => return Err(ProgramRecordError::Garbled { at: "a stage" }),
        };
        self.emit_block(blocks, None, sink);
        self.repeated = None;
        sink.enter_stage(self.thread, stage, word & (LOW_60 >> 4));
        Ok(())
    }

    /// Reports the completed block, with the address at which execution continued.
    fn emit_block(&mut self, blocks: &BlockTable, next: Option<u64>, sink: &mut dyn ExecutionSink) {
        let Some(block) = self.block.take().and_then(|number| blocks.get(number)) else {
            return;
        };
        let goes_on = self.repeated == Some(block.start);
        if !goes_on && self.emit_run(block, next, sink) {
            self.received += block.count() as u64;
            self.repeated = None;
            return;
        }
        self.emit_ops(block, goes_on, next, sink);
        self.received += block.count() as u64 - u64::from(goes_on);
        self.repeated = block.repeated_at();
    }

    /// Reports a block as a whole. Returns false if it must be reported by its operations.
    fn emit_run(
        &mut self,
        block: &CodeBlock,
        next: Option<u64>,
        sink: &mut dyn ExecutionSink,
    ) -> bool {
        let Some(plan) = &block.plan else {
            return false;
        };
        let run = plan.match_execution(&self.words, next, &mut self.touches);
        run.is_some_and(|run| sink.record_block(self.thread, &run))
    }

    /// Reports a block by its operations; if `goes_on`, as another round of the same repeated
    /// instruction.
    fn emit_ops(
        &mut self,
        block: &CodeBlock,
        goes_on: bool,
        next: Option<u64>,
        sink: &mut dyn ExecutionSink,
    ) {
        let count = block.count();
        let mut accesses = std::mem::take(&mut self.accesses);
        accesses.clear();
        accesses.extend(self.words.iter().map(|word| AccessWord::new(*word)));
        let mut rest = &mut accesses[..];
        for (number, (instruction, ops)) in block.instructions().enumerate() {
            let end = rest.iter().position(|word| word.instruction != number);
            let (own, behind) = rest.split_at_mut(end.unwrap_or(rest.len()));
            rest = behind;
            let reported = ExecutedInstruction {
                thread: self.thread,
                next: next.filter(|_| number + 1 == count),
                goes_on: number == 0 && goes_on,
            };
            let word = own.first().map(|word| word.address);
            reported.emit_ops(ops, own, sink);
            if let (Some(compares), Some(word)) = (instruction.atomic, word) {
                let code = ops.first().map_or(block.start, |op| op.address);
                let atomic = AtomicUpdate {
                    word,
                    code,
                    compares,
                };
                sink.record_atomic(self.thread, atomic);
            }
        }
        self.accesses = accesses;
    }
}

struct ExecutedInstruction {
    thread: usize,
    /// Address at which execution continued behind the block, if known and if it is the last
    /// instruction.
    next: Option<u64>,
    /// True for another round of the instruction that was reported before.
    goes_on: bool,
}

impl ExecutedInstruction {
    fn emit_ops(&self, ops: &[Op], accesses: &mut [AccessWord], sink: &mut dyn ExecutionSink) {
        let mut is_new = !self.goes_on;
        for template in ops {
            if template.data.is_none() && template.branch.is_none() && is_new == template.first {
                is_new = false;
                sink.record_op(self.thread, template);
                continue;
            }
            let mut op = *template;
            if op.data.is_some() && !locate_data(&mut op, accesses) {
                continue;
            }
            op.first = std::mem::take(&mut is_new);
            if let Some(branch) = op.branch {
                op.branch = Some(resolve_branch(&op, branch, self.next));
            }
            sink.record_op(self.thread, &op);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::{Access, OpKind};

    #[derive(Default)]
    struct Heard(Vec<Op>, Vec<SystemCall>, Vec<AtomicUpdate>);

    impl ExecutionSink for Heard {
        fn record_op(&mut self, _: usize, op: &Op) {
            self.0.push(*op);
        }

        fn enter_stage(&mut self, _: usize, _: RecordingStage, _: u64) {}

        fn record_system_call(&mut self, _: usize, call: &SystemCall) {
            self.1.push(*call);
        }

        fn record_atomic(&mut self, _: usize, atomic: AtomicUpdate) {
            self.2.push(atomic);
        }
    }

    const BLOCK: u64 = 8 << 60;

    fn described(blocks: &[(u64, &[&[u8]])]) -> BlockTable {
        let mut bytes = Vec::new();
        for (number, (start, code)) in (0_u32..).zip(blocks) {
            bytes.extend(number.to_le_bytes());
            bytes.extend((code.len() as u32).to_le_bytes());
            bytes.extend(start.to_le_bytes());
            for code in *code {
                bytes.push(code.len() as u8);
                bytes.extend(*code);
            }
        }
        let mut described = BlockTable::default();
        described.add_descriptions(&bytes).unwrap();
        described
    }

    fn received(blocks: &BlockTable, words: &[u64]) -> Vec<Op> {
        all_heard(blocks, words).0
    }

    fn all_heard(blocks: &BlockTable, words: &[u64]) -> Heard {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut sink = Heard::default();
        let mut lane = ThreadDecoder::new(0);
        lane.decode_words(&bytes, blocks, &mut sink).unwrap();
        lane.finish(blocks, &mut sink);
        sink
    }

    fn access(op: &Op) -> (u64, u16) {
        let Access { address, bytes, .. } = op.data.unwrap();
        (address, bytes)
    }

    #[test]
    fn branches_went_where_the_next_block_is() {
        // jne to 0x1000, at 0x1000.
        let blocks = described(&[(0x1000, &[&[0x75, 0xfe]]), (0x1002, &[&[0x90]])]);
        let ops = received(&blocks, &[BLOCK, BLOCK, BLOCK | 1]);
        let taken: Vec<_> = ops
            .iter()
            .filter_map(|op| op.branch)
            .map(|b| b.taken)
            .collect();
        assert_eq!(taken, [true, false]);
        assert_eq!(ops[1].branch.unwrap().target, 0x1002);
    }

    #[test]
    fn pieces_of_an_access_are_one() {
        // movups xmm0, [rax]: two pieces of 8 bytes.
        let blocks = described(&[(0x1000, &[&[0x0f, 0x10, 0x00]])]);
        let ops = received(&blocks, &[BLOCK, 3 << 59 | 0x8000, 3 << 59 | 0x8008]);
        assert_eq!(ops.len(), 1);
        assert_eq!(access(&ops[0]), (0x8000, 16));
    }

    #[test]
    fn atomic_update_reads_where_it_writes() {
        // lock inc dword [rax], reported as one access.
        let blocks = described(&[(0x1000, &[&[0xf0, 0xff, 0x00]])]);
        let ops = received(&blocks, &[BLOCK, 1 << 62 | 2 << 59 | 0x8000]);
        assert_eq!(ops.len(), 3);
        assert_eq!(
            (access(&ops[0]), access(&ops[2])),
            ((0x8000, 4), (0x8000, 4))
        );
    }

    #[test]
    fn atomic_updates_and_calls_have_their_operands() {
        // lock cmpxchg [rdi], edx, and system call 202.
        let blocks = described(&[(0x1000, &[&[0xf0, 0x0f, 0xb1, 0x17]])]);
        let update = [BLOCK, 2 << 59 | 0x8000, 1 << 62 | 2 << 59 | 0x8000];
        let call = [10 << 60 | 202, 11 << 60 | 0x8000, 11 << 60, 11 << 60 | 2];
        let received = all_heard(&blocks, &[&update[..], &call[..]].concat());
        let (number, arguments) = (202, [0x8000, 0, 2]);
        assert_eq!(received.1, [SystemCall { number, arguments }]);
        let (word, code, compares) = (0x8000, 0x1000, true);
        let atomic = AtomicUpdate {
            word,
            code,
            compares,
        };
        assert_eq!(received.2, [atomic]);
    }

    #[test]
    fn repeated_instruction_counts_once() {
        // rep stosb, three rounds and the check that finds nothing left.
        let blocks = described(&[(0x1000, &[&[0xf3, 0xaa]]), (0x1002, &[&[0x90]])]);
        let store = |address: u64| 1 << 62 | address;
        let words = [BLOCK, store(0x80), BLOCK, store(0x81), BLOCK, BLOCK | 1];
        let ops = received(&blocks, &words);
        assert_eq!(ops.iter().filter(|op| op.first).count(), 2);
        assert_eq!(ops.iter().filter(|op| op.kind == OpKind::Store).count(), 2);
    }

    #[test]
    fn undescribed_block_is_an_error() {
        let mut lane = ThreadDecoder::new(0);
        let bytes = (BLOCK | 7).to_le_bytes();
        let error = lane.decode_words(&bytes, &BlockTable::default(), &mut Heard::default());
        assert!(error.is_err());
    }
}
