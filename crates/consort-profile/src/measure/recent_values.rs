//! Values in memory, for as long as they matter.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use consort_ops::Op;

use super::stack::MultiplyHasher;

/// Number of pieces from which outdated ones are removed.
const FEW: usize = 1 << 9;

type PieceHasher = BuildHasherDefault<MultiplyHasher>;

/// Values by piece of memory of eight bytes. A value whose store has left the window delays nothing
/// and is forgotten at some time.
#[derive(Debug, Clone)]
pub(super) struct RecentValues<V> {
    /// Length of the window, instructions.
    window: u64,
    pieces: HashMap<u64, PieceValues<V>, PieceHasher>,
    /// Number of pieces at which outdated ones are next removed.
    most: usize,
}

/// Values in a piece of memory. Most pieces have one.
#[derive(Debug, Clone)]
struct PieceValues<V> {
    last: StoredValue<V>,
    /// Earlier ones, oldest first, as far as some bytes of them are left.
    before: Vec<StoredValue<V>>,
}

#[derive(Debug, Clone, Copy)]
struct StoredValue<V> {
    /// Bytes of the piece that have the value, a bit each.
    bytes: u8,
    /// Number of the instruction that stored it.
    at: u64,
    value: V,
}

impl<V: Copy> RecentValues<V> {
    pub(super) fn new(window: usize) -> Self {
        Self {
            window: window as u64,
            pieces: HashMap::default(),
            most: FEW,
        }
    }

    /// The values that an operation reads a byte of, as far as they may matter.
    pub(super) fn read(&self, op: &Op) -> impl Iterator<Item = &V> {
        pieces(op).flat_map(|(piece, bytes)| {
            let stored = self.pieces.get(&piece).into_iter();
            let all = stored.flat_map(|values| values.before.iter().chain([&values.last]));
            let read = all.filter(move |stored| stored.bytes & bytes != 0);
            read.map(|stored| &stored.value)
        })
    }

    /// Instructions from the youngest store that wrote some of a load's bytes to instruction number
    /// `now`, if it does not store all that the load reads: such a load cannot take its data from
    /// that store.
    pub(super) fn partial_distance(&self, op: &Op, now: u64) -> Option<u64> {
        let read = || {
            pieces(op).map(|(piece, bytes)| {
                let stored = self.pieces.get(&piece).into_iter();
                let all = stored.flat_map(|values| values.before.iter().chain([&values.last]));
                let read = all.filter(move |stored| stored.bytes & bytes != 0);
                (bytes, read.max_by_key(|stored| stored.at))
            })
        };
        let youngest = read().filter_map(|(_, stored)| stored.map(|stored| stored.at));
        let youngest = youngest.max()?;
        let covers = |(bytes, stored): (u8, Option<&StoredValue<V>>)| {
            stored.is_some_and(|stored| stored.at == youngest && stored.bytes & bytes == bytes)
        };
        (!read().all(covers)).then(|| now - youngest)
    }

    /// Stores a value where instruction number `now` writes.
    pub(super) fn store(&mut self, op: &Op, now: u64, value: V) {
        if self.pieces.len() > self.most {
            let window = self.window;
            self.pieces
                .retain(|_, values| now - values.last.at <= window);
            self.most = FEW.max(2 * self.pieces.len());
        }
        for (piece, bytes) in pieces(op) {
            let at = now;
            let stored = StoredValue { bytes, at, value };
            self.pieces
                .entry(piece)
                .and_modify(|values| values.overwrite(stored))
                .or_insert_with(|| PieceValues {
                    last: stored,
                    before: Vec::new(),
                });
        }
    }
}

impl<V: Copy> PieceValues<V> {
    fn overwrite(&mut self, stored: StoredValue<V>) {
        let last = std::mem::replace(&mut self.last, stored);
        if self.before.is_empty() && last.bytes & !stored.bytes == 0 {
            return;
        }
        self.before.push(last);
        self.before.retain_mut(|before| {
            before.bytes &= !stored.bytes;
            before.bytes != 0
        });
    }
}

/// Pieces of eight bytes that an access touches, each with the bytes of it, a bit each.
fn pieces(op: &Op) -> impl Iterator<Item = (u64, u8)> + use<> {
    let bounds = op.data.map(|data| {
        let bytes = u64::from(data.bytes.max(1));
        (data.address, data.address.saturating_add(bytes - 1))
    });
    let pieces = bounds.map(|(first, last)| {
        let piece = move |piece: u64| {
            let from = if piece == first >> 3 { first & 7 } else { 0 };
            let to = if piece == last >> 3 { last & 7 } else { 7 };
            (piece, (u8::MAX << from) & (u8::MAX >> (7 - to)))
        };
        (first >> 3..=last >> 3).map(piece)
    });
    pieces.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_ops::{Access, OpKind};

    fn access(address: u64, bytes: u16) -> Op {
        let mut op = Op::new(OpKind::Store, 0);
        op.data = Some(Access {
            address,
            bytes,
            is_vector: false,
        });
        op
    }

    fn read(recent: &RecentValues<u64>, address: u64, bytes: u16) -> Vec<u64> {
        recent.read(&access(address, bytes)).copied().collect()
    }

    #[test]
    fn only_values_within_window_are_kept() {
        let mut recent = RecentValues::new(128);
        for now in 0..60_000 {
            recent.store(&access(8 * now, 8), now, now);
            let oldest = now.saturating_sub(128);
            assert_eq!(read(&recent, 8 * oldest, 8), [oldest]);
            assert!(recent.pieces.len() <= FEW + 1);
        }
    }

    #[test]
    fn neighbours_in_piece_are_values_of_their_own() {
        let mut recent = RecentValues::new(128);
        for half in 0..4 {
            recent.store(&access(0x100 + 2 * half, 2), half, half);
        }
        assert_eq!(read(&recent, 0x102, 2), [1]);
        assert_eq!(read(&recent, 0x100, 8), [0, 1, 2, 3]);
        recent.store(&access(0x101, 4), 4, 4);
        assert_eq!(read(&recent, 0x100, 8), [0, 2, 3, 4]);
        assert_eq!(read(&recent, 0x102, 2), [4]);
        recent.store(&access(0xfc, 12), 5, 5);
        assert_eq!(read(&recent, 0x100, 8), [5]);
        assert!(read(&recent, 0xfb, 1).is_empty());
    }
}
