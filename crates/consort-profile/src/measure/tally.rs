//! Counts that are taken apart by interval and put together again.

/// Counts of which a part can be told.
pub trait PartialTally: Clone {
    /// Puts each count together with its counterpart.
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64);

    /// Adds what was counted elsewhere.
    fn add(&mut self, other: &Self) {
        self.merge(other, u64::saturating_add);
    }

    /// Counts since `before`.
    #[must_use]
    fn since(&self, before: &Self) -> Self {
        let mut rest = self.clone();
        rest.merge(before, u64::saturating_sub);
        rest
    }
}

impl PartialTally for u64 {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        *self = with(*self, *other);
    }
}

impl<T: PartialTally, const N: usize> PartialTally for [T; N] {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        for (own, other) in self.iter_mut().zip(other) {
            own.merge(other, with);
        }
    }
}
