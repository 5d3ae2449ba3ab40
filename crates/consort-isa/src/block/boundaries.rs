//! Instruction boundaries before a known one.
//!
//! A64 instructions are four bytes each. x86 cannot be read backwards: several byte sequences
//! ending at the same place may all be instructions. But decoding from a wrong start falls into
//! step with the true sequence after a few instructions (Linn and Debray, "Obfuscation of
//! Executable Code to Improve Resistance to Static Disassembly", CCS 2003, section 2.2, on this
//! self-repairing of x86), so the true boundaries are those through which most decodings pass.
//! Every byte of a window before the known address is tried as a start; those that hit the known
//! address exactly vote for all boundaries on their way; then the way back is the one with the most
//! votes at each step. Addresses known to be boundaries (other samples, branch targets) vote with a
//! weight that no number of guesses can reach.
//!
//! Pitfall: the first few bytes of the window have few voters. A boundary needs two votes, so what
//! lies at the very start of the window is left out rather than guessed.

use std::collections::HashSet;

use crate::decode::InstructionSteps;
use crate::{Arch, CodeBytes};

/// The most bytes that one x86 instruction can take.
const MAX_INSTRUCTION_BYTES: usize = 15;

/// Distance back in which boundaries are looked for, bytes. Enough for the blocks of
/// ordinary code (a compiler emits about five instructions of four bytes per
/// block) and for eight of the longest instructions.
pub(crate) const LOOK_BACK_BYTES: u64 = 128;

/// Distance back in which the start of a long block is looked for, bytes: that of a
/// loop that a compiler has unrolled.
pub(crate) const FAR_LOOK_BACK_BYTES: u64 = 1024;

/// The vote of a known boundary: more than all guesses of a window together.
const ANCHOR_VOTES: u32 = 1_000;

/// Votes below which a boundary is left out.
const ENOUGH_VOTES: u32 = 2;

/// The boundaries in the `bytes` before `address` in ascending order, `address` excluded.
pub(crate) fn boundaries_before(
    code: &CodeBytes<'_>,
    address: u64,
    bytes: u64,
    anchors: &[u64],
) -> Vec<u64> {
    let start = address.saturating_sub(bytes).max(code.base);
    if code.arch == Arch::Aarch64 {
        let first = address - (address - start) / 4 * 4;
        return (first..address).step_by(4).collect();
    }
    let window = VoteWindow::from_votes(code, start, address, anchors);
    window.trace_back()
}

/// The votes on the bytes of one window.
struct VoteWindow {
    start: u64,
    /// Per byte: where the instruction that starts there ends, if it lies on a
    /// way to the end of the window.
    next: Vec<Option<usize>>,
    votes: Vec<u32>,
}

impl VoteWindow {
    fn from_votes(code: &CodeBytes<'_>, start: u64, end: u64, anchors: &[u64]) -> Self {
        let len = usize::try_from(end - start).unwrap_or(0);
        let next = next_boundaries(code, start, len);
        let anchors: HashSet<u64> = anchors.iter().copied().collect();
        let mut votes = vec![0_u32; len];
        // Offsets ascend, so each start has all of its votes before it passes them on.
        for offset in 0..len {
            let Some(next_offset) = next[offset] else {
                continue;
            };
            let anchored = anchors.contains(&(start + offset as u64));
            votes[offset] += if anchored { ANCHOR_VOTES } else { 1 };
            let passed_on = votes[offset];
            if let Some(vote) = votes.get_mut(next_offset) {
                *vote = vote.saturating_add(passed_on);
            }
        }
        Self { start, next, votes }
    }

    fn trace_back(&self) -> Vec<u64> {
        let mut boundaries = Vec::new();
        let mut current = self.next.len();
        while let Some(previous) = self.best_predecessor(current) {
            boundaries.push(self.start + previous as u64);
            current = previous;
        }
        boundaries.reverse();
        boundaries
    }

    /// The start of an instruction that ends at `end` with the most votes.
    fn best_predecessor(&self, end: usize) -> Option<usize> {
        let nearest = end.saturating_sub(MAX_INSTRUCTION_BYTES);
        (nearest..end)
            .filter(|&offset| self.next[offset] == Some(end))
            .filter(|&offset| self.votes[offset] >= ENOUGH_VOTES)
            .max_by_key(|&offset| self.votes[offset])
    }
}

fn next_boundaries(code: &CodeBytes<'_>, start: u64, len: usize) -> Vec<Option<usize>> {
    let mut next: Vec<Option<usize>> = vec![None; len];
    let Some(mut steps) = InstructionSteps::from_address(code, start) else {
        return next;
    };
    for offset in (0..len).rev() {
        let end = steps.step_at(offset).map(|step| offset + step.len);
        next[offset] = end.filter(|&end| end == len || next.get(end).is_some_and(Option::is_some));
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn code(bytes: &[u8]) -> CodeBytes<'_> {
        CodeBytes {
            arch: Arch::X86_64,
            bytes,
            base: 0x1000,
        }
    }

    #[test]
    fn known_boundary_outvotes_every_guess() {
        // movabs rax, imm64 whose immediate is ten one-byte instructions.
        let bytes = [
            0x48, 0xb8, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
        ];
        let address = 0x100a;
        assert_eq!(
            boundaries_before(&code(&bytes), address, LOOK_BACK_BYTES, &[0x1000]),
            [0x1000]
        );
    }

    #[test]
    fn single_vote_is_not_enough() {
        let bytes = [0x90, 0x90];
        assert_eq!(
            boundaries_before(&code(&bytes), 0x1001, LOOK_BACK_BYTES, &[]),
            Vec::<u64>::new()
        );
    }

    #[test]
    fn fixed_length_boundaries_stay_inside_the_code() {
        let bytes = [0; 64];
        let code = CodeBytes {
            arch: Arch::Aarch64,
            bytes: &bytes,
            base: 0x1002,
        };
        assert_eq!(
            boundaries_before(&code, 0x100c, LOOK_BACK_BYTES, &[]),
            [0x1004, 0x1008]
        );
    }
}
