//! Values in memory, for as long as they matter.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

use consort_ops::Op;

use super::stack::MultiplyHasher;

/// Pieces of memory of eight bytes that are remembered; with more, all are forgotten.
const MOST_PIECES: usize = 1 << 16;
/// Number of values from which outdated ones are removed.
const FEW: usize = 1 << 9;

type PieceHasher = BuildHasherDefault<MultiplyHasher>;

/// Values by piece of memory. A value whose store has left the window delays nothing, so only the
/// fact that the piece was stored is kept.
#[derive(Debug, Clone)]
pub(super) struct RecentValues<V> {
    /// Length of the window, instructions.
    window: u64,
    stored: HashSet<u64, PieceHasher>,
    /// Each with the number of the instruction that stored it.
    values: HashMap<u64, (u64, V), PieceHasher>,
    /// Number of values at which outdated ones are next removed.
    most: usize,
}

impl<V: Copy> RecentValues<V> {
    pub(super) fn new(window: usize) -> Self {
        Self {
            window: window as u64,
            stored: HashSet::default(),
            values: HashMap::default(),
            most: FEW,
        }
    }

    /// The value in a piece, if it may matter.
    pub(super) fn get(&self, piece: u64) -> Option<&V> {
        self.values.get(&piece).map(|(_, value)| value)
    }

    /// Stores a value where instruction number `now` writes.
    pub(super) fn store(&mut self, op: &Op, now: u64, value: V) {
        if self.stored.len() > MOST_PIECES {
            self.stored.clear();
            self.values.clear();
        }
        if self.values.len() > self.most {
            let window = self.window;
            self.values.retain(|_, (at, _)| now - *at <= window);
            self.most = FEW.max(2 * self.values.len());
        }
        for piece in pieces(op) {
            if self.values.insert(piece, (now, value)).is_none() {
                self.stored.insert(piece);
            }
        }
    }
}

/// Pieces of eight bytes that an access touches.
pub(super) fn pieces(op: &Op) -> impl Iterator<Item = u64> + use<> {
    let bounds = op.data.map(|data| {
        let bytes = u64::from(data.bytes.max(1));
        (data.address, data.address.saturating_add(bytes - 1))
    });
    let pieces = bounds.map(|(first, last)| first >> 3..=last >> 3);
    pieces.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::{Access, OpKind};

    fn store(piece: u64) -> Op {
        let mut op = Op::new(OpKind::Store, 0);
        op.data = Some(Access {
            address: piece * 8,
            bytes: 8,
            is_vector: false,
        });
        op
    }

    #[test]
    fn only_values_within_window_are_kept() {
        let mut recent = RecentValues::new(128);
        for now in 0..60_000 {
            recent.store(&store(now), now, now);
            let oldest = now.saturating_sub(128);
            assert_eq!(recent.get(oldest), Some(&oldest));
            assert!(recent.values.len() <= FEW + 1);
        }
    }

    #[test]
    fn with_too_many_pieces_all_are_forgotten() {
        let mut recent = RecentValues::new(128);
        let pieces = MOST_PIECES as u64 + 1;
        for now in 0..pieces {
            recent.store(&store(now), now, now);
        }
        // Again, which makes no more of them.
        recent.store(&store(1), pieces, 1);
        assert_eq!(recent.get(pieces - 1), None);
        assert_eq!(recent.get(1), Some(&1));
    }
}
