//! Batches that several read, and that are filled again when all have read them.

use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes that are sent at a time.
const BYTES: usize = 1 << 16;

/// A batch that is being filled, and those that were sent and may not be read yet.
#[derive(Debug)]
pub(super) struct SharedBatch<T> {
    open: Vec<T>,
    sent: VecDeque<Arc<Vec<T>>>,
}

impl<T> Default for SharedBatch<T> {
    fn default() -> Self {
        Self {
            open: Vec::with_capacity(BYTES / size_of::<T>()),
            sent: VecDeque::new(),
        }
    }
}

impl<T: Copy> SharedBatch<T> {
    /// Adds some if there is room for all of them and one more. Returns false where there is not.
    #[inline]
    pub(super) fn extend(&mut self, new: &[T]) -> bool {
        let has_room = new.len() < self.open.capacity() - self.open.len();
        if has_room {
            self.open.extend_from_slice(new);
        }
        has_room
    }
}

impl<T> SharedBatch<T> {
    /// Adds to the batch. Returns true where it is full.
    #[inline]
    pub(super) fn push(&mut self, new: T) -> bool {
        self.open.push(new);
        self.open.len() == self.open.capacity()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The batch as it is, and begins another; none where it is empty.
    pub(super) fn take_batch(&mut self) -> Option<Arc<Vec<T>>> {
        if self.is_empty() {
            return None;
        }
        let next = self.reuse_buffer();
        let full = Arc::new(std::mem::replace(&mut self.open, next));
        self.sent.push_back(full.clone());
        Some(full)
    }

    /// Room for a batch, that of the earliest one if all have read it.
    fn reuse_buffer(&mut self) -> Vec<T> {
        let is_read = |sent: &Arc<Vec<T>>| Arc::strong_count(sent) == 1;
        let is_read = self.sent.front().is_some_and(is_read);
        let read = is_read.then(|| self.sent.pop_front()).flatten();
        let mut room = read.and_then(Arc::into_inner);
        room.iter_mut().for_each(Vec::clear);
        room.unwrap_or_else(|| Self::default().open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_filled_again_when_it_was_read() {
        let mut batch = SharedBatch::default();
        assert!(batch.take_batch().is_none());
        let mut places = Vec::new();
        for round in 0..10_u64 {
            while !batch.push(round) {}
            let sent = batch.take_batch().unwrap();
            assert_eq!(sent.len() * 8, BYTES);
            assert!(sent.iter().all(|number| *number == round));
            places.push(sent.as_ptr());
        }
        places.sort_unstable();
        places.dedup();
        assert_eq!((places.len(), batch.sent.len()), (2, 1));
    }

    #[test]
    fn some_are_added_at_once_as_long_as_the_batch_does_not_get_full() {
        let mut batch = SharedBatch::<u64>::default();
        let most = batch.open.capacity();
        while batch.extend(&[1, 2, 3]) {}
        assert!((most - 3..most).contains(&batch.open.len()));
        assert!(batch.extend(&[]));
    }

    #[test]
    fn a_batch_that_is_being_read_is_left_alone() {
        let mut batch = SharedBatch::default();
        let send = |batch: &mut SharedBatch<u64>, number| {
            batch.push(number);
            batch.take_batch().unwrap()
        };
        let held: Vec<_> = (0..5).map(|number| send(&mut batch, number)).collect();
        assert!(held.iter().map(|sent| sent[0]).eq(0..5));
        drop(held);
        (0..5).for_each(|number| drop(send(&mut batch, number)));
        assert!(batch.sent.len() <= 5);
    }
}
