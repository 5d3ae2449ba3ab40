//! History of a thread's branches: outcomes, and origins of calls.

use super::SCATTER;
use crate::{Branch, BranchKind};

/// Histories of the tagged tables, branches: a geometric series (Seznec and Michaud, 2006).
pub(super) const HISTORIES: [u32; 5] = [5, 12, 29, 64, 126];
/// Bits of the tag of an entry of the tagged tables.
pub(super) const TAG_BITS: u32 = 11;

/// A number for each tagged table, and room to a power of two: one register of the host.
pub(super) type Lanes = [u16; 8];
/// Bits of the widest number.
pub(super) const MOST_BITS: u32 = u16::BITS;

/// Outcomes of a thread's last branches and the addresses behind its open calls.
///
/// Made by [`Predictor::history`](super::Predictor::new_history), and of use with that predictor
/// and those like it.
#[derive(Clone, Debug)]
pub struct BranchHistory {
    outcomes: u128,
    /// The outcomes that tagged tables look at, folded to each requested width.
    folds: Vec<FoldedHistory>,
    /// Positions of the folds for tags.
    tags: [usize; 2],
    returns: Vec<u64>,
    most_returns: usize,
}

impl BranchHistory {
    /// No outcomes yet, to be folded to these `widths` in bits, if to any then for tags among them.
    pub(super) fn new(widths: &[u32], most_returns: usize) -> Self {
        let place = |width| width_position(widths, width);
        Self {
            outcomes: 0,
            folds: widths
                .iter()
                .map(|&bits| FoldedHistory::new(bits))
                .collect(),
            tags: [place(TAG_BITS), place(TAG_BITS - 1)],
            returns: Vec::new(),
            most_returns,
        }
    }

    /// The last 64 outcomes, the youngest in the lowest bit.
    pub(super) const fn outcomes(&self) -> u64 {
        self.outcomes as u64
    }

    /// The histories of all tagged tables, folded to the width at this place.
    pub(super) fn folds(&self, place: usize) -> &Lanes {
        &self.folds[place].values
    }

    /// Under which tags tables would have a conditional branch with its history (never 0).
    pub(super) fn tags(&self, at: u64, turn: BranchKind) -> Lanes {
        if self.folds.is_empty() || turn != BranchKind::Conditional {
            return Lanes::default();
        }
        let [wide, narrow] = self.tags.map(|place| self.folds(place));
        let tag = |t: usize| (at >> 1) as u16 ^ wide[t] ^ narrow[t] << 1;
        std::array::from_fn(|t| (tag(t) & ((1 << TAG_BITS) - 1)) + 1)
    }

    /// Takes in an outcome.
    pub(super) fn push(&mut self, taken: bool) {
        if !self.folds.is_empty() {
            let leaving = leaving_outcomes(self.outcomes);
            self.folds
                .iter_mut()
                .for_each(|fold| fold.push(taken, &leaving));
        }
        self.outcomes = self.outcomes << 1 | u128::from(taken);
    }

    /// Takes in what a branch did; `after` is what follows it.
    pub(super) fn record_branch(&mut self, branch: Branch, after: u64) {
        match branch.turn {
            BranchKind::Conditional => self.push(branch.taken),
            BranchKind::Return => drop(self.returns.pop()),
            BranchKind::IndirectJump | BranchKind::IndirectCall => {
                // Two bits that depend on all of the target's.
                let mixed = branch.target.wrapping_mul(SCATTER);
                self.push(mixed >> 63 == 1);
                self.push(mixed >> 62 & 1 == 1);
            }
            BranchKind::Jump | BranchKind::Call => {}
        }
        if matches!(branch.turn, BranchKind::Call | BranchKind::IndirectCall) {
            self.push_return(after);
        }
    }

    /// Notes a call; what is too deep is forgotten.
    fn push_return(&mut self, after: u64) {
        if self.returns.len() >= self.most_returns {
            self.returns.remove(0);
        }
        self.returns.push(after);
    }

    /// Origin of the last call.
    pub(super) fn last_return(&self) -> Option<u64> {
        self.returns.last().copied()
    }
}

/// Position of a width among others; 0 where it is missing.
pub(super) fn width_position(widths: &[u32], width: u32) -> usize {
    let at = widths.iter().position(|other| *other == width);
    at.unwrap_or(0)
}

/// For each tagged table all bits, or none, as the outcome that leaves its history was.
///
/// Not inlined, so that the compiler keeps one vector instead of eight scalars.
#[inline(never)]
fn leaving_outcomes(outcomes: u128) -> Lanes {
    // Lanes of no table take any outcome, so that all are alike; it ends nowhere.
    let length = |t| HISTORIES.get(t).copied().unwrap_or(t as u32);
    std::array::from_fn(|t| ((outcomes >> (length(t) - 1)) as u16 & 1).wrapping_neg())
}

/// The histories of all tagged tables folded into a few bits by exclusive or, kept up with every
/// outcome (Michaud, JILP 7, 2005, section 3).
#[derive(Clone, Copy, Debug)]
struct FoldedHistory {
    bits: u32,
    /// The bit at which what leaves a history lies.
    ends: Lanes,
    values: Lanes,
}

impl FoldedHistory {
    /// No outcomes, in so many bits, at least one and at most [`MOST_BITS`].
    fn new(bits: u32) -> Self {
        let bits = bits.clamp(1, MOST_BITS);
        let end = |t| HISTORIES.get(t).map_or(0, |length| 1 << (length % bits));
        Self {
            bits,
            ends: std::array::from_fn(end),
            values: Lanes::default(),
        }
    }

    /// Adds an outcome and removes the ones that leave the histories.
    fn push(&mut self, taken: bool, leaving: &Lanes) {
        let (last, mask) = (self.bits - 1, u16::MAX >> (MOST_BITS - self.bits));
        let (values, ends) = (self.values, self.ends);
        self.values = std::array::from_fn(|t| {
            let rotated = values[t] << 1 | values[t] >> last;
            (rotated ^ u16::from(taken) ^ leaving[t] & ends[t]) & mask
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_those_of_the_whole_history() {
        let (mut history, mut all) = (BranchHistory::new(&[10, 11], 16), 0_u128);
        for i in 0..500_u64 {
            let taken = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
            history.push(taken);
            all = all << 1 | u128::from(taken);
            for (t, length) in HISTORIES.into_iter().enumerate() {
                let seen = all & ((1 << length) - 1);
                let pieces = (0..12).map(|piece| (seen >> (11 * piece)) as u16 & 0x7ff);
                let folded = pieces.fold(0, |folded, piece| folded ^ piece);
                assert_eq!(history.folds(1)[t], folded);
            }
        }
    }
}
