//! Recording of a trace.

use super::Trace;
use super::code::{TraceCode, strip_execution};
use super::file::{ThreadTrace, TraceInfo};
use super::streams::{Strides, Successors, ThreadStreams, write_branch};
use crate::{Branch, Op};
use std::collections::HashMap;

/// Operations after which a block ends even without a branch.
const MOST_OPS: usize = 256;

/// Builds a trace from operations as they are executed.
///
/// A trace gives back exactly the operations that were recorded, whatever they are.
#[derive(Debug, Default)]
pub struct TraceRecorder {
    code: TraceCode,
    op_numbers: HashMap<OpKey, u32>,
    block_numbers: HashMap<Vec<u32>, u32>,
    threads: Vec<ThreadWriter>,
}

/// Key of a static operation; cheaper to compare than the whole.
type OpKey = (OpShapeKey, u64);
type OpShapeKey = [u8; 24];

#[derive(Debug, Default)]
struct ThreadWriter {
    reported: ThreadTrace,
    streams: ThreadStreams,
    successors: Successors,
    strides: Strides,
    /// Operations of the block that is not yet complete.
    open: Vec<u32>,
    /// The branch that ended the last block; how it is written depends on the next block.
    ended: Option<(Op, Branch)>,
}

impl TraceRecorder {
    /// A recorder that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next operation of thread `number`, threads being counted from 0.
    pub fn push(&mut self, number: usize, op: &Op) {
        let id = self.intern_op(op);
        let thread = self.thread_mut(number);
        thread.reported.operations += 1;
        thread.reported.instructions += u64::from(op.first);
        thread.open.push(id);
        if let Some(data) = op.data {
            let addresses = &mut thread.streams.addresses;
            thread.strides.write(addresses, id, data.address);
        }
        if op.branch.is_some() || thread.open.len() == MOST_OPS {
            self.end_block(number);
            self.thread_mut(number).ended = op.branch.map(|branch| (*op, branch));
        }
    }

    /// Instructions taken so far of all threads.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.threads
            .iter()
            .map(|thread| thread.reported.instructions)
            .sum()
    }

    /// Names thread `number`.
    pub fn name_thread(&mut self, number: usize, name: &str) {
        name.clone_into(&mut self.thread_mut(number).reported.name);
    }

    /// The trace of all that was taken.
    #[must_use]
    pub fn finish(mut self, about: TraceInfo) -> Trace {
        for number in 0..self.threads.len() {
            self.end_block(number);
            self.thread_mut(number).end_branch(None);
        }
        let parts = self
            .threads
            .into_iter()
            .map(|thread| (thread.reported, thread.streams));
        let (threads, streams) = parts.unzip();
        Trace {
            about,
            threads,
            code: self.code,
            streams,
        }
    }

    fn thread_mut(&mut self, number: usize) -> &mut ThreadWriter {
        if self.threads.len() <= number {
            self.threads.resize_with(number + 1, ThreadWriter::default);
        }
        &mut self.threads[number]
    }

    fn intern_op(&mut self, op: &Op) -> u32 {
        let next = self.code.ops.len() as u32;
        let number = *self.op_numbers.entry((key(op), op.address)).or_insert(next);
        if number == next {
            self.code.ops.push(strip_execution(op));
        }
        number
    }

    fn end_block(&mut self, number: usize) {
        let ops = std::mem::take(&mut self.thread_mut(number).open);
        let Some(&first) = ops.first() else { return };
        let next = self.code.blocks.len() as u32;
        let start = self.code.op(first).map(|op| op.address);
        let block = *self.block_numbers.entry(ops).or_insert_with_key(|ops| {
            self.code.blocks.push(ops.clone());
            next
        });
        let thread = self.thread_mut(number);
        thread.end_branch(start);
        let successors = &mut thread.streams.successors;
        thread.successors.write(successors, block);
    }
}

impl ThreadWriter {
    fn end_branch(&mut self, next: Option<u64>) {
        if let Some((op, branch)) = self.ended.take() {
            write_branch(&mut self.streams, &op, branch, next);
        }
    }
}

/// All of an operation but its address and what only its execution determines, without collisions.
fn key(op: &Op) -> OpShapeKey {
    let mut key = [0; 24];
    key[0] = op.length;
    key[1] = op.kind.index() as u8;
    key[2] = u8::from(op.first);
    let registers = op.sources.iter().chain(&op.targets);
    for (place, register) in registers.enumerate() {
        key[3 + 2 * place] = u8::from(register.is_some());
        key[4 + 2 * place] = register.map_or(0, |register| register.index() as u8);
    }
    if let Some(data) = op.data {
        key[15] = 1 + u8::from(data.is_vector);
        [key[16], key[17]] = data.bytes.to_le_bytes();
    }
    key[18] = op.branch.map_or(0, |branch| 1 + branch.turn as u8);
    key[19] = op.fusion.index() as u8;
    key
}
