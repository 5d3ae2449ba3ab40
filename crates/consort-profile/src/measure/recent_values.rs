//! Values in memory, as long as they matter.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

use consort_ops::Op;

use super::stack::MultiplyHasher;

/// Pieces of memory of eight bytes that are remembered; with more, all are forgotten.
const MOST_PIECES: usize = 1 << 16;
/// Values that are kept before those that do not matter any more are looked for.
const FEW: usize = 1 << 9;

type PieceHasher = BuildHasherDefault<MultiplyHasher>;

/// Values by piece of memory. What the window has left behind its retirement holds up nobody, so
/// it is known that it was stored but not what.
#[derive(Debug, Clone)]
pub(super) struct RecentValues<V> {
    /// Instructions of the window.
    window: u64,
    stored: HashSet<u64, PieceHasher>,
    /// With the number of the instruction that stored each.
    values: HashMap<u64, (u64, V), PieceHasher>,
    /// Values with which those that do not matter any more go.
    most: usize,
}

impl<V: Copy> RecentValues<V> {
    /// No values, for a window of so many instructions.
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
            self.forget(now);
        }
        for piece in pieces(op) {
            if self.values.insert(piece, (now, value)).is_none() {
                self.stored.insert(piece);
            }
        }
    }

    fn forget(&mut self, now: u64) {
        let window = self.window;
        self.values.retain(|_, (at, _)| now - *at <= window);
        self.most = FEW.max(2 * self.values.len());
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
    fn values_within_the_window_are_kept_and_few_others() {
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
