//! Operations of a thread as they were executed.

use super::bytes::ByteReader;
use super::code::TraceCode;
use super::error::Damage;
use super::streams::{Strides, Successors, ThreadStreams, read_branch, start};
use crate::Op;

/// Operations of one thread, in the order of execution.
#[derive(Debug, Clone)]
pub struct Ops<'a> {
    code: &'a TraceCode,
    successors: ByteReader<'a>,
    outcomes: ByteReader<'a>,
    targets: ByteReader<'a>,
    addresses: ByteReader<'a>,
    behind: Successors,
    strides: Strides,
    /// Rest of the block that is being executed.
    block: &'a [u32],
    next: Option<u32>,
}

impl<'a> Ops<'a> {
    pub(super) fn new(code: &'a TraceCode, streams: Option<&'a ThreadStreams>) -> Self {
        let of = |bytes: fn(&ThreadStreams) -> &[u8]| ByteReader::new(streams.map_or(&[], bytes));
        let mut ops = Self {
            code,
            successors: of(|streams| &streams.successors),
            outcomes: of(|streams| &streams.outcomes),
            targets: of(|streams| &streams.targets),
            addresses: of(|streams| &streams.addresses),
            behind: Successors::default(),
            strides: Strides::default(),
            block: &[],
            next: None,
        };
        // What is damaged at its beginning is found so by the first step.
        ops.next = ops.read_successor().ok().flatten();
        ops
    }

    fn read_successor(&mut self) -> Result<Option<u32>, Damage> {
        self.behind
            .read(&mut self.successors, self.code.blocks.len())
    }

    /// The next operation, nothing at the end.
    pub(super) fn step(&mut self) -> Result<Option<Op>, Damage> {
        if self.block.is_empty() {
            let Some(block) = self.next else {
                return Ok(None);
            };
            self.block = self.code.block(block).ok_or(Damage::Value)?;
            self.next = self.read_successor()?;
        }
        let Some((&number, rest)) = self.block.split_first() else {
            return Ok(None);
        };
        self.block = rest;
        let mut op = *self.code.op(number).ok_or(Damage::Value)?;
        if let Some(data) = &mut op.data {
            data.address = self.strides.read(&mut self.addresses, number)?;
        }
        if let Some(branch) = op.branch {
            let next = start(self.code, self.next);
            let (outcomes, targets) = (&mut self.outcomes, &mut self.targets);
            op.branch = Some(read_branch(outcomes, targets, &op, branch, next)?);
        }
        Ok(Some(op))
    }

    /// Returns true where nothing is left over.
    pub(super) const fn is_at_end(&self) -> bool {
        self.successors.is_at_end()
            && self.outcomes.is_at_end()
            && self.targets.is_at_end()
            && self.addresses.is_at_end()
    }
}

impl Iterator for Ops<'_> {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        self.step().ok().flatten()
    }
}
