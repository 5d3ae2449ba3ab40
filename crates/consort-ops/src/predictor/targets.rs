//! Targets of taken branches.

const WAYS: usize = 4;

/// A branch target buffer of sets of four.
#[derive(Clone, Debug)]
pub(crate) struct TargetBuffer(Vec<TargetSet>);

/// Buffers of predictors side by side, all equally large.
#[derive(Clone, Debug)]
pub(super) struct TargetBuffers {
    /// Sets of the same number lie next to each other.
    sets: Vec<TargetSet>,
    buffers: usize,
    /// For each set number, the entry that several buffers learnt last: most branches are learnt
    /// again before another of their set, so that learning can be skipped.
    latest: Vec<LatestTarget>,
}

/// Entry that is the latest of its set.
#[derive(Clone, Copy, Debug, Default)]
struct LatestTarget {
    entry: TargetEntry,
    /// The buffers in which it is, as bits.
    buffers: u32,
}

/// Entries in the order of use, the latest first; those without a branch have no address.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct TargetSet([TargetEntry; WAYS]);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TargetEntry {
    key: u64,
    target: u64,
}

impl TargetBuffer {
    /// A buffer of so many branches.
    pub(crate) fn new(branches: u32) -> Self {
        let sets = (branches as usize / WAYS).max(1);
        Self(vec![TargetSet::default(); sets])
    }

    /// Returns the target known of a branch; from here on the true one is.
    pub(crate) fn learn(&mut self, key: u64, target: u64) -> Option<u64> {
        let place = set_index(key, self.0.len());
        self.0[place].learn(TargetEntry { key, target })
    }
}

impl TargetBuffers {
    /// As many empty buffers of so many branches.
    pub(super) fn new(buffers: usize, like: &TargetBuffer) -> Self {
        let sets = like.0.len();
        Self {
            sets: vec![TargetSet::default(); sets * buffers],
            buffers,
            latest: vec![LatestTarget::default(); sets],
        }
    }

    /// Lets the buffers given as bits learn the target of a branch.
    pub(super) fn learn(&mut self, reported: u32, key: u64, target: u64) {
        let place = set_index(key, self.latest.len());
        let (entry, latest) = (TargetEntry { key, target }, &mut self.latest[place]);
        if latest.entry != entry {
            let buffers = 0;
            *latest = LatestTarget { entry, buffers };
        }
        let mut news = reported & !latest.buffers;
        latest.buffers |= reported;
        while news != 0 {
            let buffer = news.trailing_zeros() as usize;
            self.sets[place * self.buffers + buffer].learn(entry);
            news &= news - 1;
        }
    }

    /// Returns the target that one buffer knows of a branch; from here on it knows the true one.
    pub(super) fn learn_one(&mut self, buffer: usize, key: u64, target: u64) -> Option<u64> {
        let place = set_index(key, self.latest.len());
        self.latest[place].buffers &= !(1 << buffer);
        self.sets[place * self.buffers + buffer].learn(TargetEntry { key, target })
    }
}

impl TargetSet {
    /// Returns the target known of a branch; from here on the true one is.
    fn learn(&mut self, new: TargetEntry) -> Option<u64> {
        let Self(set) = self;
        if set[0] == new {
            return Some(new.target);
        }
        let known = set.iter().position(|entry| entry.key == new.key);
        let before = known.map(|at| set[at].target);
        // Where it is not known, the branch used longest ago goes.
        let at = known.unwrap_or(WAYS - 1);
        set.copy_within(..at, 1);
        set[0] = new;
        before
    }
}

/// The number of the set of a branch, of so many.
fn set_index(key: u64, sets: usize) -> usize {
    let (mixed, count) = (key ^ key >> 17, sets as u64);
    let number = match count.is_power_of_two() {
        true => mixed & (count - 1),
        false => mixed % count,
    };
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_the_branches_used_last() {
        let mut targets = TargetBuffer::new(4);
        for key in [1, 2, 3, 4, 1, 5] {
            targets.learn(key, key * 10);
        }
        let kept = |targets: &TargetBuffer, key| targets.clone().learn(key, 0);
        assert_eq!(
            [1, 2, 3, 4, 5].map(|key| kept(&targets, key)),
            [Some(10), None, Some(30), Some(40), Some(50)]
        );
    }
}
