//! Where taken branches went.

const WAYS: usize = 4;

/// A branch target buffer of sets of four.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    sets: Vec<[Entry; WAYS]>,
    clock: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    key: u64,
    target: u64,
    used: u64,
}

impl Targets {
    /// A buffer of so many branches.
    pub(crate) fn new(branches: u32) -> Self {
        let sets = (branches as usize / WAYS).max(1);
        Self {
            sets: vec![Default::default(); sets],
            clock: 0,
        }
    }

    /// What is known of a branch's target; the true one is from here on.
    pub(crate) fn learn(&mut self, key: u64, target: u64) -> Option<u64> {
        self.clock += 1;
        let count = self.sets.len() as u64;
        let set = &mut self.sets[((key ^ key >> 17) % count) as usize];
        let known = set
            .iter()
            .position(|entry| entry.used > 0 && entry.key == key);
        let at = known.unwrap_or_else(|| oldest(set));
        let before = known.map(|at| set[at].target);
        set[at] = Entry {
            key,
            target,
            used: self.clock,
        };
        before
    }
}

fn oldest(set: &[Entry; WAYS]) -> usize {
    let ages = set.iter().enumerate().min_by_key(|(_, entry)| entry.used);
    ages.map_or(0, |(at, _)| at)
}
