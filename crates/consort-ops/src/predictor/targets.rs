//! Targets of taken branches.

const WAYS: usize = 4;

/// A branch target buffer of sets of four.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    sets: Vec<Set>,
    /// Number of the set that is taken for the first.
    first: usize,
}

/// Entries in the order of use, the latest first; those without a branch have no address.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([Entry; WAYS]);

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    key: u64,
    target: u64,
}

impl Targets {
    /// A buffer of so many branches.
    pub(crate) fn new(branches: u32) -> Self {
        let sets = (branches as usize / WAYS).max(1);
        Self {
            sets: vec![Set::default(); sets],
            first: 0,
        }
    }

    /// Begins with another set, as long as nothing is known: sets of the same number of buffers side
    /// by side would fight for the same lines of this host's caches.
    pub(super) fn displace(&mut self, by: usize) {
        self.first = by % self.sets.len();
    }

    /// Returns the target known of a branch; from here on the true one is.
    pub(crate) fn learn(&mut self, key: u64, target: u64) -> Option<u64> {
        let place = self.place(key);
        let Set(set) = &mut self.sets[place];
        if set[0].key == key && set[0].target == target {
            return Some(target);
        }
        let known = set.iter().position(|entry| entry.key == key);
        let before = known.map(|at| set[at].target);
        // Where it is not known, the branch used longest ago goes.
        let at = known.unwrap_or(WAYS - 1);
        set.copy_within(..at, 1);
        set[0] = Entry { key, target };
        before
    }

    /// The set of a branch.
    fn place(&self, key: u64) -> usize {
        let (mixed, count) = (key ^ key >> 17, self.sets.len() as u64);
        let number = match count.is_power_of_two() {
            true => mixed & (count - 1),
            false => mixed % count,
        };
        let place = number as usize + self.first;
        place.checked_sub(self.sets.len()).unwrap_or(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_the_branches_used_last() {
        let mut targets = Targets::new(4);
        for key in [1, 2, 3, 4, 1, 5] {
            targets.learn(key, key * 10);
        }
        let kept = |targets: &Targets, key| targets.clone().learn(key, 0);
        assert_eq!(
            [1, 2, 3, 4, 5].map(|key| kept(&targets, key)),
            [Some(10), None, Some(30), Some(40), Some(50)]
        );
    }
}
