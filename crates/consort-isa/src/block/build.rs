//! Cutting the block around an address out of code bytes.

use super::boundaries::{self, FAR_LOOK_BACK_BYTES, LOOK_BACK_BYTES};
use super::rounds::Rounds;
use super::suspicion::View;
use super::{BlockError, BlockFacts, Entry};
use crate::decode::Steps;
use crate::{Arch, Code, Flow, Instruction, decode};

/// The most bytes decoded behind the sampled address. Compilers unroll loops to
/// some hundred bytes; only a block that is so long is decoded so far.
const LOOK_AHEAD_BYTES: u64 = 1024;

/// The most bytes decoded behind the end of the block in search of branches
/// back into it.
const LOOK_BEHIND_BYTES: u64 = 256;

impl BlockFacts {
    /// The block around the instruction at `address`.
    ///
    /// `code` should reach 1,024 bytes before the address and 1,280 behind it
    /// where the program has so many; less gives a smaller block. `anchors` are
    /// addresses known to be instruction boundaries (other samples, function
    /// starts, branch targets), in any order; they help on x86 only.
    ///
    /// # Errors
    ///
    /// [`BlockError`] if the address is not in `code` or holds no instruction.
    pub fn build(code: Code<'_>, address: u64, anchors: &[u64]) -> Result<Self, BlockError> {
        let window = Window::decode(&code, address, anchors)?;
        Ok(window.into_block(address))
    }
}

/// The decoded surroundings of one address.
struct Window {
    arch: Arch,
    /// Everything decoded up to the end of the block.
    instructions: Vec<Instruction>,
    /// Start of the block in `instructions`, by branches before it.
    first: usize,
    /// Direct branches seen before the block, in it and behind it.
    branches: Vec<Branch>,
}

/// A direct branch.
#[derive(Clone, Copy)]
struct Branch {
    target: u64,
    /// Instruction before it.
    before: Option<Instruction>,
}

impl Window {
    fn decode(code: &Code<'_>, address: u64, anchors: &[u64]) -> Result<Self, BlockError> {
        let bytes = code.from(address).ok_or(BlockError::Outside {
            address,
            base: code.base,
            len: code.bytes.len(),
        })?;
        let sampled = decode(code.arch, bytes, address)?;
        let (mut instructions, first) = straight_before(code, address, anchors);
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
        let lead = lead(&self.instructions[..start], block);
        let view = View {
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

    /// Behind the branch that ends the block, or where others come in.
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

    /// Instructions before the branches that lead to the block from elsewhere nearby, where they
    /// access memory: they retire together with the branch.
    fn sources(&self, start: usize) -> Vec<Instruction> {
        let address = self.instructions[start].address;
        let leading = self.branches.iter().filter(|b| b.target == address);
        let before = leading.filter_map(|branch| branch.before);
        before.filter(Instruction::may_miss).collect()
    }

    fn entry(&self, start: usize) -> Entry {
        let Some(previous) = start.checked_sub(1).map(|index| self.instructions[index]) else {
            return Entry::Unknown;
        };
        match previous.flow {
            Flow::Next => Entry::Joined,
            Flow::Conditional(_) => Entry::Fallthrough,
            Flow::Call(_) => Entry::AfterCall,
            Flow::Jump(_) | Flow::Return | Flow::Stop => Entry::Target,
        }
    }
}

/// Rounds of the only string instruction that repeats in the block, else of the loop that it is.
fn rounds(block: &[Instruction], loops: bool) -> Option<Rounds> {
    let mut repeated = block.iter().filter(|i| i.memory.repeats);
    match (repeated.next(), repeated.next()) {
        (None, _) => loops.then(|| Rounds::of(block)),
        (Some(only), None) => Rounds::of_repeated(only),
        _ => None,
    }
}

/// A call to the block's own start is recursion, not a loop.
const fn loop_target(flow: Flow) -> Option<u64> {
    match flow {
        Flow::Conditional(target) | Flow::Jump(target) => target,
        Flow::Next | Flow::Call(_) | Flow::Return | Flow::Stop => None,
    }
}

/// Part of `context` that comes before the block in each round of a loop that it ends: from the
/// target of its last branch on, if only conditional branches stand there.
fn lead<'a>(context: &'a [Instruction], block: &[Instruction]) -> &'a [Instruction] {
    let target = block.last().and_then(|last| loop_target(last.flow));
    let head = target.and_then(|target| context.iter().position(|i| i.address == target));
    let lead = head.map_or(&[][..], |head| &context[head..]);
    let passes = |i: &Instruction| matches!(i.flow, Flow::Next | Flow::Conditional(_));
    if lead.iter().all(passes) { lead } else { &[] }
}

/// The instructions before `address`, and from which on they are in one piece.
/// Where that piece begins is looked for further away only if it is not near.
fn straight_before(code: &Code<'_>, address: u64, anchors: &[u64]) -> (Vec<Instruction>, usize) {
    let mut run = Vec::new();
    for bytes in [LOOK_BACK_BYTES, FAR_LOOK_BACK_BYTES] {
        run = preceding(code, address, bytes, anchors);
        let ends = |instruction: &Instruction| instruction.flow.ends_block();
        if let Some(branch) = run.iter().rposition(ends) {
            return (run, branch + 1);
        }
    }
    (run, 0)
}

/// The instructions before `address`. What cannot be decoded ends the run.
fn preceding(code: &Code<'_>, address: u64, bytes: u64, anchors: &[u64]) -> Vec<Instruction> {
    let mut run = Vec::new();
    let boundaries = boundaries::before(code, address, bytes, anchors);
    for boundary in boundaries.into_iter().rev() {
        let decoded = code
            .from(boundary)
            .and_then(|bytes| decode(code.arch, bytes, boundary).ok());
        let Some(instruction) = decoded else { break };
        run.push(instruction);
    }
    run.reverse();
    run
}

/// Decodes on from the last instruction up to and including the next branch.
fn extend_to_branch(code: &Code<'_>, instructions: &mut Vec<Instruction>) {
    let Some(mut last) = instructions.last().copied() else {
        return;
    };
    let limit = last.address.saturating_add(LOOK_AHEAD_BYTES);
    while !last.flow.ends_block() && last.end() < limit {
        let Some(next) = next_of(code, &last) else {
            return;
        };
        instructions.push(next);
        last = next;
    }
}

fn next_of(code: &Code<'_>, instruction: &Instruction) -> Option<Instruction> {
    let address = instruction.end();
    decode(code.arch, code.from(address)?, address).ok()
}

/// Direct branches shortly before the block, in it and shortly behind it: the branch that closes a
/// loop stands behind the blocks of the loop, the one that passes over a part before it.
fn branches_near(code: &Code<'_>, instructions: &[Instruction]) -> Vec<Branch> {
    let branch = |(index, instruction): (usize, &Instruction)| {
        let before = index.checked_sub(1).map(|before| instructions[before]);
        let target = instruction.flow.target()?;
        Some(Branch { target, before })
    };
    let own = instructions.iter().enumerate().filter_map(branch);
    own.chain(branches_behind(code, instructions)).collect()
}

/// Branches behind the last instruction that lead back to one of `instructions`.
fn branches_behind(code: &Code<'_>, instructions: &[Instruction]) -> Vec<Branch> {
    let mut branches = Vec::new();
    let (Some(first), Some(last)) = (instructions.first(), instructions.last()) else {
        return branches;
    };
    let (mut previous, mut address) = (last.address, last.end());
    let Some(mut steps) = Steps::from(code, address) else {
        return branches;
    };
    let start = address;
    while address < start.saturating_add(LOOK_BEHIND_BYTES)
        && let Some(next) = steps.at((address - start) as usize)
    {
        let back = next
            .target
            .filter(|to| (first.address..=last.address).contains(to));
        branches.extend(back.map(|target| {
            Branch {
                target,
                before: code
                    .from(previous)
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
