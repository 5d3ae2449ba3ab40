//! What a thread's branches did: outcomes, and where calls came from.

use super::direction::HISTORIES;

/// Bits of the tag of an entry of the tagged tables.
pub(super) const TAG_BITS: u32 = 11;

/// Outcomes of a thread's last branches and the addresses behind its open calls.
///
/// Made by [`Predictor::history`](super::Predictor::history), and of use with that predictor
/// and those like it.
#[derive(Clone, Debug)]
pub struct History {
    outcomes: u128,
    /// The outcomes that each tagged table looks at, folded for its index and its tag.
    folds: Vec<Folds>,
    returns: Vec<u64>,
    most_returns: usize,
}

/// The history of one tagged table, folded to the width of its index and twice for its tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folds {
    pub(super) index: Fold,
    pub(super) tag: Fold,
    pub(super) other_tag: Fold,
}

impl History {
    /// No outcomes yet; tables have `index_bits` bits of index, 0 where there are none.
    pub(super) fn new(index_bits: u32, most_returns: usize) -> Self {
        let folds = |length: u32| Folds {
            index: Fold::new(index_bits, length),
            tag: Fold::new(TAG_BITS, length),
            other_tag: Fold::new(TAG_BITS - 1, length),
        };
        let tables = if index_bits > 0 { &HISTORIES[..] } else { &[] };
        Self {
            outcomes: 0,
            folds: tables.iter().map(|&length| folds(length)).collect(),
            returns: Vec::new(),
            most_returns,
        }
    }

    /// The last 64 outcomes, the youngest in the lowest bit.
    pub(super) const fn outcomes(&self) -> u64 {
        self.outcomes as u64
    }

    /// The folded history of a tagged table.
    pub(super) fn folds(&self, table: usize) -> &Folds {
        &self.folds[table]
    }

    /// Takes in an outcome.
    pub(super) fn push(&mut self, taken: bool) {
        for (folds, length) in self.folds.iter_mut().zip(HISTORIES) {
            let leaves = self.outcomes >> (length - 1) & 1 == 1;
            folds.index.push(taken, leaves);
            folds.tag.push(taken, leaves);
            folds.other_tag.push(taken, leaves);
        }
        self.outcomes = self.outcomes << 1 | u128::from(taken);
    }

    /// Notes a call; what is too deep is forgotten.
    pub(super) fn call(&mut self, after: u64) {
        if self.returns.len() >= self.most_returns {
            self.returns.remove(0);
        }
        self.returns.push(after);
    }

    /// Where the last call came from, which is forgotten.
    pub(super) fn back(&mut self) -> Option<u64> {
        self.returns.pop()
    }
}

/// History folded into a few bits by exclusive or, kept up with every outcome (Michaud, JILP 7,
/// 2005, section 3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold {
    bits: u32,
    /// Where what leaves the history lies.
    end: u32,
    value: u64,
}

impl Fold {
    /// A history of `length` outcomes in `bits`, of which there is at least one.
    const fn new(bits: u32, length: u32) -> Self {
        let bits = if bits == 0 { 1 } else { bits };
        Self {
            bits,
            end: length % bits,
            value: 0,
        }
    }

    pub(super) const fn value(&self) -> u64 {
        self.value
    }

    /// Takes in an outcome, and out the one that leaves the history.
    const fn push(&mut self, taken: bool, leaves: bool) {
        let rotated = self.value << 1 | self.value >> (self.bits - 1);
        let out = (leaves as u64) << self.end;
        self.value = (rotated ^ taken as u64 ^ out) & ((1 << self.bits) - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_are_those_of_the_whole_history() {
        let (mut history, mut fold, length) = (0_u128, Fold::new(11, 44), 44);
        for i in 0..500_u64 {
            let taken = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 1;
            fold.push(taken, history >> (length - 1) & 1 == 1);
            history = (history << 1 | u128::from(taken)) & ((1 << length) - 1);
            let pieces = (0..4).map(|piece| (history >> (11 * piece)) as u64 & 0x7ff);
            assert_eq!(fold.value(), pieces.fold(0, |folded, piece| folded ^ piece));
        }
    }
}
