//! One placement for all that differ only in the names of identical cores.
//!
//! Cores of one type under one LLC with an L2 of their own, cores that share an L2, and the PUs of
//! a core can be exchanged without changing anything. Each set of running threads is solved in
//! the placement in which such cores hold their threads in a fixed order, so that a scheduler
//! that moves threads among equal cores meets solutions that are there already.

use crate::chip::Chip;

/// A running thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SolverSlot {
    /// Index of the thread.
    pub(crate) thread: usize,
    /// The PU that it is on; after [`CanonicalPlacement::arrange`] the one for which it is solved.
    pub(crate) pu: usize,
    /// Key of the properties of the thread that its rates depend on.
    pub(crate) what: [u64; 4],
}

/// Classes of cores that are alike.
#[derive(Clone, Debug)]
pub(crate) struct CanonicalPlacement {
    /// Class of each core.
    class: Vec<usize>,
    /// Cores of each class.
    cores: Vec<Vec<usize>>,
    core_of: Vec<usize>,
    /// First PU of each core.
    first_pu: Vec<usize>,
    /// Runs of slots on one core: class, begin, end.
    runs: Vec<(usize, usize, usize)>,
    arranged: Vec<SolverSlot>,
}

impl CanonicalPlacement {
    pub(crate) fn new(chip: &Chip) -> Self {
        let places = chip.places();
        let count = chip.domains().cores;
        let mut first_pu = vec![places.len(); count];
        for (pu, place) in places.iter().enumerate().rev() {
            first_pu[place.core] = pu;
        }
        let of = |core: usize| places[first_pu[core]];
        let alone = |core: usize| (0..count).filter(|&c| of(c).l2 == of(core).l2).count() == 1;
        let key = |core: usize| match alone(core) {
            true => (0, of(core).llc, of(core).core_type),
            false => (1, of(core).l2, of(core).core_type),
        };
        let mut keys: Vec<(i32, usize, usize)> = (0..count).map(key).collect();
        let class_keys = keys.clone();
        keys.sort_unstable();
        keys.dedup();
        let class_of = |core: usize| keys.partition_point(|k| *k < class_keys[core]);
        let class: Vec<usize> = (0..count).map(class_of).collect();
        let members = |c| (0..count).filter(|&core| class[core] == c).collect();
        Self {
            cores: (0..keys.len()).map(members).collect(),
            core_of: places.iter().map(|p| p.core).collect(),
            class,
            first_pu,
            runs: Vec::new(),
            arranged: Vec::new(),
        }
    }

    /// Arranges running threads on like cores in the order of what they are.
    pub(crate) fn arrange(&mut self, slots: &mut Vec<SolverSlot>) {
        slots.sort_unstable_by_key(|s| (self.core_of[s.pu], s.what, s.thread));
        self.list_runs(slots);
        let what = |run: &(usize, usize, usize)| slots[run.1..run.2].iter().map(|s| s.what);
        self.runs
            .sort_by(|a, b| a.0.cmp(&b.0).then_with(|| what(a).cmp(what(b))));
        self.arranged.clear();
        let (mut class, mut nth) = (usize::MAX, 0);
        for &(own, begin, end) in &self.runs {
            nth = if own == class { nth + 1 } else { 0 };
            class = own;
            let first = self.first_pu[self.cores[class][nth]];
            for (way, slot) in slots[begin..end].iter().enumerate() {
                let pu = first + way;
                self.arranged.push(SolverSlot { pu, ..*slot });
            }
        }
        std::mem::swap(slots, &mut self.arranged);
    }

    fn list_runs(&mut self, slots: &[SolverSlot]) {
        self.runs.clear();
        let mut begin = 0;
        while begin < slots.len() {
            let core = self.core_of[slots[begin].pu];
            let same = slots[begin..].iter();
            let length = same.take_while(|s| self.core_of[s.pu] == core).count();
            self.runs.push((self.class[core], begin, begin + length));
            begin += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::chip;
    use super::*;
    use proptest::prelude::*;

    /// Threads `t` on the PUs given, each like no other.
    fn arranged(pus: &[usize]) -> Vec<SolverSlot> {
        let slot = |(thread, &pu): (usize, &usize)| SolverSlot {
            thread,
            pu,
            what: [thread as u64, 0, 0, 0],
        };
        let mut slots: Vec<SolverSlot> = pus.iter().enumerate().map(slot).collect();
        CanonicalPlacement::new(&chip(1)).arrange(&mut slots);
        slots
    }

    #[test]
    fn names_of_equal_cores_make_no_difference_and_sharing_a_core_does() {
        assert_eq!(arranged(&[0, 2, 4]), arranged(&[7, 1, 3]));
        assert_ne!(arranged(&[0, 1, 4]), arranged(&[0, 2, 4]));
    }

    proptest! {
        #[test]
        fn who_shares_a_core_still_does_and_no_pu_has_two(
            order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
            n in 1usize..=8,
        ) {
            let slots = arranged(&order[..n]);
            let mut pus: Vec<usize> = slots.iter().map(|s| s.pu).collect();
            pus.sort_unstable();
            pus.dedup();
            prop_assert_eq!(pus.len(), n);
            for a in &slots {
                for b in &slots {
                    let before = order[a.thread] / 2 == order[b.thread] / 2;
                    prop_assert_eq!(a.pu / 2 == b.pu / 2, before);
                }
            }
        }
    }
}
