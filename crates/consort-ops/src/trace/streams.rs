//! Streams of what differs between executions, and the operations that they give back: blocks that
//! followed, addresses of data, outcomes of branches.
//!
//! Writer and reader keep the same expectations; what comes as expected is a zero.

use super::Damage;
use super::bytes::{ByteReader, put_number, put_signed};
use super::code::TraceCode;
use crate::{Branch, Op};

/// The branch went the other way than the block behind it implies.
const OTHER_WAY: u8 = 1;
/// The target is not the block behind it, and is written.
const OWN_TARGET: u8 = 2;

/// Bytes of one thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ThreadStreams {
    pub(super) successors: Vec<u8>,
    pub(super) outcomes: Vec<u8>,
    pub(super) targets: Vec<u8>,
    pub(super) addresses: Vec<u8>,
}

/// Block expected behind each; blocks are counted from 1, 0 is the beginning.
#[derive(Debug, Clone, Default)]
pub(super) struct Successors {
    last: u32,
    behind: Vec<u32>,
}

impl Successors {
    fn expected_block(&mut self) -> &mut u32 {
        let last = self.last as usize;
        if self.behind.len() <= last {
            self.behind.resize(last + 1, 0);
        }
        &mut self.behind[last]
    }

    pub(super) fn write(&mut self, out: &mut Vec<u8>, block: u32) {
        let number = block + 1;
        let expected = self.expected_block();
        let as_expected = *expected == number;
        *expected = number;
        put_number(out, if as_expected { 0 } else { u64::from(number) });
        self.last = number;
    }

    /// The next of `blocks` blocks; nothing at the end.
    pub(super) fn read(
        &mut self,
        from: &mut ByteReader,
        blocks: usize,
    ) -> Result<Option<u32>, Damage> {
        if from.is_at_end() {
            return Ok(None);
        }
        let given = from.read_index()?;
        let expected = self.expected_block();
        let number = if given == 0 { *expected } else { given };
        let block = number
            .checked_sub(1)
            .filter(|&block| (block as usize) < blocks);
        let block = block.ok_or(Damage::Value)?;
        *expected = number;
        self.last = number;
        Ok(Some(block))
    }
}

/// Address at which each operation is expected to find its data: one stride on.
#[derive(Debug, Clone, Default)]
pub(super) struct Strides {
    of: Vec<(u64, u64)>,
}

impl Strides {
    fn entry(&mut self, op: u32) -> &mut (u64, u64) {
        let op = op as usize;
        if self.of.len() <= op {
            self.of.resize(op + 1, (0, 0));
        }
        &mut self.of[op]
    }

    pub(super) fn write(&mut self, out: &mut Vec<u8>, op: u32, address: u64) {
        let (last, stride) = self.entry(op);
        let step = address.wrapping_sub(*last);
        put_signed(out, step.wrapping_sub(*stride));
        (*last, *stride) = (address, step);
    }

    pub(super) fn read(&mut self, from: &mut ByteReader, op: u32) -> Result<u64, Damage> {
        let difference = from.read_signed()?;
        let (last, stride) = self.entry(op);
        let step = stride.wrapping_add(difference);
        let address = last.wrapping_add(step);
        (*last, *stride) = (address, step);
        Ok(address)
    }
}

/// Outcome expected of a branch when the block behind it, if there is one, starts at `next`.
fn expected_outcome(op: &Op, next: Option<u64>) -> (bool, u64) {
    let through = op.address.wrapping_add(u64::from(op.length));
    let target = next.unwrap_or(through);
    (target != through, target)
}

pub(super) fn write_branch(
    streams: &mut ThreadStreams,
    op: &Op,
    branch: Branch,
    next: Option<u64>,
) {
    let (taken, target) = expected_outcome(op, next);
    let mut flags = if branch.taken == taken { 0 } else { OTHER_WAY };
    if branch.target != target {
        flags |= OWN_TARGET;
        put_signed(&mut streams.targets, branch.target.wrapping_sub(op.address));
    }
    streams.outcomes.push(flags);
}

pub(super) fn read_branch(
    outcomes: &mut ByteReader,
    targets: &mut ByteReader,
    op: &Op,
    branch: Branch,
    next: Option<u64>,
) -> Result<Branch, Damage> {
    let (taken, mut target) = expected_outcome(op, next);
    let flags = outcomes.read_byte()?;
    if flags & OWN_TARGET != 0 {
        target = op.address.wrapping_add(targets.read_signed()?);
    }
    let taken = taken != (flags & OTHER_WAY != 0);
    Ok(Branch {
        taken,
        target,
        ..branch
    })
}

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
        // Damage at the beginning is reported by the first step.
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
            let next = self.next.and_then(|block| self.code.start(block));
            let (outcomes, targets) = (&mut self.outcomes, &mut self.targets);
            op.branch = Some(read_branch(outcomes, targets, &op, branch, next)?);
        }
        Ok(Some(op))
    }

    /// True if nothing is left over.
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
