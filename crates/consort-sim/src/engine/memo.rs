//! Solutions kept for reuse, keyed by exactly what they depend on.
//!
//! The key lists, in the order of the PUs, each running thread's PU, phase, intensity, home node
//! and group of siblings; groups are numbered by first appearance, so that equal threads are
//! interchangeable, and equal cores are put in order first ([`super::canonical`]). The table has a fixed number of places, each key has one, and a newer
//! solution takes the place of an older: bounded, without allocation once warm, and the same on
//! every host.

use super::draw::mix;
use crate::contention::Solution;

/// Places of the table, a power of two: at 20 threads about 8 KiB each.
const PLACES: usize = 4096;

/// Number of times that solutions were reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoUse {
    /// Asked for and there.
    pub hits: u64,
    /// Asked for and solved.
    pub misses: u64,
}

#[derive(Clone, Debug)]
struct MemoEntry {
    key: Vec<u64>,
    solution: Solution,
}

/// The table.
#[derive(Clone, Debug)]
pub(crate) struct Memo {
    entries: Vec<Option<MemoEntry>>,
    usage: MemoUse,
}

impl Memo {
    pub(crate) fn new() -> Self {
        Self {
            entries: vec![None; PLACES],
            usage: MemoUse::default(),
        }
    }

    /// The solution for a key, from the table or from `solve`.
    pub(crate) fn get(&mut self, key: &[u64], solve: impl FnOnce() -> Solution) -> &Solution {
        let hash = key.iter().fold(0, |hash, part| mix(hash ^ part));
        let place = &mut self.entries[hash as usize % PLACES];
        let entry = match place.take() {
            Some(entry) if entry.key == key => {
                self.usage.hits += 1;
                entry
            }
            _ => {
                self.usage.misses += 1;
                MemoEntry {
                    key: key.to_vec(),
                    solution: solve(),
                }
            }
        };
        &place.insert(entry).solution
    }

    pub(crate) fn usage(&self) -> MemoUse {
        self.usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solution(iterations: u32) -> Solution {
        Solution {
            threads: Vec::new(),
            converged: true,
            residual: 0.0,
            iterations,
            memory_utilisation: Vec::new(),
            interconnect_utilisation: Vec::new(),
        }
    }

    #[test]
    fn every_key_gets_its_own_solution_however_many_there_are() {
        let mut memo = Memo::new();
        for round in 0..2 {
            for key in 0..3 * PLACES as u32 {
                let got = memo.get(&[u64::from(key), 7], || solution(key)).iterations;
                assert_eq!(got, key, "round {round}");
            }
        }
        let asked = memo.usage().hits + memo.usage().misses;
        assert_eq!(asked, 6 * PLACES as u64);
        assert!(memo.entries.len() == PLACES);
    }

    #[test]
    fn what_is_there_is_not_solved_again() {
        let mut memo = Memo::new();
        memo.get(&[1], || solution(1));
        let again = memo.get(&[1], || solution(2)).iterations;
        assert_eq!((again, memo.usage().hits), (1, 1));
    }
}
