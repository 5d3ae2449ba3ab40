//! Cutting the block around an address out of code bytes.

use super::boundaries::{self, FAR_LOOK_BACK_BYTES, LOOK_BACK_BYTES};
use super::rounds::LoopRound;
use super::suspicion::BlockSurroundings;
use super::{BlockEntry, BlockError, BlockFacts};
use crate::decode::InstructionSteps;
use crate::{Arch, CodeBytes, FlowKind, Instruction, decode};

/// The most bytes decoded behind the sampled address. Compilers unroll loops to
/// some hundred bytes; only a block that is so long is decoded so far.
const LOOK_AHEAD_BYTES: u64 = 1024;

/// The most bytes decoded behind the end of the block in search of branches back into it.
const LOOK_BEHIND_BYTES: u64 = 256;

impl BlockFacts {
    /// The block around the instruction at `address`.
    ///
    /// `code` should reach 1,024 bytes before the address and 1,280 behind it, if the program has
    /// that many; with less the block is smaller. `anchors` are addresses known to be instruction
    /// boundaries (other samples, function starts, branch targets), in any order; they help on x86
    /// only.
    ///
    /// # Errors
    ///
    /// [`BlockError`] if the address is not in `code` or holds no instruction.
    pub fn build(code: CodeBytes<'_>, address: u64, anchors: &[u64]) -> Result<Self, BlockError> {
        let window = DecodedWindow::decode(&code, address, anchors)?;
        Ok(window.into_block(address))
    }
}

struct DecodedWindow {
    arch: Arch,
    /// Everything decoded up to the end of the block.
    instructions: Vec<Instruction>,
    /// Start of the block in `instructions`, by branches before it.
    first: usize,
    /// Direct branches seen before the block, in it and behind it.
    branches: Vec<DirectBranch>,
}

#[derive(Clone, Copy)]
struct DirectBranch {
    target: u64,
    before: Option<Instruction>,
}

impl DecodedWindow {
    fn decode(code: &CodeBytes<'_>, address: u64, anchors: &[u64]) -> Result<Self, BlockError> {
        let bytes = code.bytes_from(address).ok_or(BlockError::Outside {
            address,
            base: code.base,
            len: code.bytes.len(),
        })?;
        let sampled = decode(code.arch, bytes, address)?;
        let (mut instructions, first) = straight_run_before(code, address, anchors);
        instructions.push(sampled);
        extend_to_branch(code, &mut instructions);
        let branches = branches_near(code, &instructions);
        Ok(Self {
            arch: code.arch,
            instructions,
            first,
            branches,
        })
    }

    fn into_block(self, address: u64) -> BlockFacts {
        let start = self.start_at_or_before(address);
        let end = self.end_behind(address);
        let block = &self.instructions[start..end];
        let entry = self.entry(start);
        let loops = block
            .last()
            .and_then(|last| loop_target(last.flow))
            .is_some_and(|target| target == block[0].address);
        let sources = self.sources(start);
        let lead = loop_prefix(&self.instructions[..start], block);
        let view = BlockSurroundings {
            arch: self.arch,
            block,
            context: &self.instructions[..start],
            sources: &sources,
            entry,
            loops,
            lead,
        };
        BlockFacts {
            suspicions: view.suspicions(),
            class_counts: count_classes(block),
            instructions: block.into(),
            entry,
            loops,
            lead: lead.into(),
            fused: sources.iter().find_map(|source| source.operand),
            rounds: rounds(block, loops),
        }
    }

    /// The last instruction at or before `address` where control can come in.
    fn start_at_or_before(&self, address: u64) -> usize {
        (self.first..self.instructions.len())
            .rev()
            .filter(|&index| self.instructions[index].address <= address)
            .find(|&index| self.is_target(index))
            .unwrap_or(self.first)
    }

    /// The end of the block: behind its branch, or at the next branch target.
    fn end_behind(&self, address: u64) -> usize {
        (self.first..self.instructions.len())
            .filter(|&index| self.instructions[index].address > address)
            .find(|&index| self.is_target(index))
            .unwrap_or(self.instructions.len())
    }

    fn is_target(&self, index: usize) -> bool {
        let address = self.instructions[index].address;
        self.branches.iter().any(|branch| branch.target == address)
    }

    /// The instructions directly before the nearby branches to this block, if they access memory:
    /// they retire together with the branch.
    fn sources(&self, start: usize) -> Vec<Instruction> {
        let address = self.instructions[start].address;
        let leading = self.branches.iter().filter(|b| b.target == address);
        let before = leading.filter_map(|branch| branch.before);
        before.filter(Instruction::may_miss).collect()
    }

    fn entry(&self, start: usize) -> BlockEntry {
        let Some(previous) = start.checked_sub(1).map(|index| self.instructions[index]) else {
            return BlockEntry::Unknown;
        };
        match previous.flow {
            FlowKind::Next => BlockEntry::Joined,
            FlowKind::Conditional(_) => BlockEntry::Fallthrough,
            FlowKind::Call(_) => BlockEntry::AfterCall,
            FlowKind::Jump(_) | FlowKind::Return | FlowKind::Stop => BlockEntry::Target,
        }
    }
}

/// One round of the block's only repeated string instruction, or else of the loop that the block
/// is. `None` if several string instructions repeat.
fn rounds(block: &[Instruction], loops: bool) -> Option<LoopRound> {
    let mut repeated = block.iter().filter(|i| i.memory.repeats);
    match (repeated.next(), repeated.next()) {
        (None, _) => loops.then(|| LoopRound::from_body(block)),
        (Some(only), None) => LoopRound::from_repeated(only),
        _ => None,
    }
}

/// A call to the block's own start is recursion, not a loop.
const fn loop_target(flow: FlowKind) -> Option<u64> {
    match flow {
        FlowKind::Conditional(target) | FlowKind::Jump(target) => target,
        FlowKind::Next | FlowKind::Call(_) | FlowKind::Return | FlowKind::Stop => None,
    }
}

/// Part of `context` that runs before the block in each round of a loop that the block ends: from
/// the target of its last branch on, if all branches in between are conditional.
fn loop_prefix<'a>(context: &'a [Instruction], block: &[Instruction]) -> &'a [Instruction] {
    let target = block.last().and_then(|last| loop_target(last.flow));
    let head = target.and_then(|target| context.iter().position(|i| i.address == target));
    let lead = head.map_or(&[][..], |head| &context[head..]);
    let passes = |i: &Instruction| matches!(i.flow, FlowKind::Next | FlowKind::Conditional(_));
    if lead.iter().all(passes) { lead } else { &[] }
}

/// The instructions before `address`, and the index from which they are contiguous. Looks further
/// back only if the run does not begin nearby.
fn straight_run_before(
    code: &CodeBytes<'_>,
    address: u64,
    anchors: &[u64],
) -> (Vec<Instruction>, usize) {
    let mut run = Vec::new();
    for bytes in [LOOK_BACK_BYTES, FAR_LOOK_BACK_BYTES] {
        run = decode_preceding(code, address, bytes, anchors);
        let ends = |instruction: &Instruction| instruction.flow.ends_block();
        if let Some(branch) = run.iter().rposition(ends) {
            return (run, branch + 1);
        }
    }
    (run, 0)
}

/// The instructions before `address`, back to the first that cannot be decoded.
fn decode_preceding(
    code: &CodeBytes<'_>,
    address: u64,
    bytes: u64,
    anchors: &[u64],
) -> Vec<Instruction> {
    let mut run = Vec::new();
    let boundaries = boundaries::boundaries_before(code, address, bytes, anchors);
    for boundary in boundaries.into_iter().rev() {
        let decoded = code
            .bytes_from(boundary)
            .and_then(|bytes| decode(code.arch, bytes, boundary).ok());
        let Some(instruction) = decoded else { break };
        run.push(instruction);
    }
    run.reverse();
    run
}

/// Decodes from the last instruction up to and including the next branch.
fn extend_to_branch(code: &CodeBytes<'_>, instructions: &mut Vec<Instruction>) {
    let Some(mut last) = instructions.last().copied() else {
        return;
    };
    let limit = last.address.saturating_add(LOOK_AHEAD_BYTES);
    while !last.flow.ends_block() && last.end() < limit {
        let address = last.end();
        let bytes = code.bytes_from(address);
        let Some(next) = bytes.and_then(|bytes| decode(code.arch, bytes, address).ok()) else {
            return;
        };
        instructions.push(next);
        last = next;
    }
}

/// Direct branches shortly before the block, in it and shortly behind it: the branch that closes a
/// loop comes after the blocks of the loop, the one that skips a part comes before it.
fn branches_near(code: &CodeBytes<'_>, instructions: &[Instruction]) -> Vec<DirectBranch> {
    let branch = |(index, instruction): (usize, &Instruction)| {
        let before = index.checked_sub(1).map(|before| instructions[before]);
        let target = instruction.flow.target()?;
        Some(DirectBranch { target, before })
    };
    let own = instructions.iter().enumerate().filter_map(branch);
    own.chain(branches_behind(code, instructions)).collect()
}

/// Branches behind the last instruction that lead back to one of `instructions`.
fn branches_behind(code: &CodeBytes<'_>, instructions: &[Instruction]) -> Vec<DirectBranch> {
    let mut branches = Vec::new();
    let (Some(first), Some(last)) = (instructions.first(), instructions.last()) else {
        return branches;
    };
    let (mut previous, mut address) = (last.address, last.end());
    let Some(mut steps) = InstructionSteps::from_address(code, address) else {
        return branches;
    };
    let start = address;
    while address < start.saturating_add(LOOK_BEHIND_BYTES)
        && let Some(next) = steps.step_at((address - start) as usize)
    {
        let back = next
            .target
            .filter(|to| (first.address..=last.address).contains(to));
        branches.extend(back.map(|target| {
            DirectBranch {
                target,
                before: code
                    .bytes_from(previous)
                    .and_then(|bytes| decode(code.arch, bytes, previous).ok()),
            }
        }));
        previous = address;
        address = address.saturating_add(next.len as u64);
    }
    branches
}

fn count_classes(block: &[Instruction]) -> [u16; 7] {
    let mut counts = [0; 7];
    for instruction in block {
        counts[instruction.class.index()] += 1;
    }
    counts
}
