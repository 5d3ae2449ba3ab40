//! Pages of code, kept after they were read, in a bounded cache of two generations.
//!
//! New and used entries are in the young generation. When that is half the bound, it becomes the
//! old one and the old one is dropped, so an entry is dropped if it was not used for a whole
//! generation. This is cheaper than keeping an order, and the bound always holds.

use super::space::{CodePlace, SpaceId};
use crate::perf::page_bytes;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// One page of code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CachedPage {
    pub(super) bytes: Box<[u8]>,
    /// True if the page is to be read again in the next round.
    pub(super) changeable: bool,
}

/// Pages by place, bounded: those of a file are the same for all processes that have mapped it.
#[derive(Debug)]
pub(super) struct PageCache {
    pages: GenerationCache<CodePlace, (Arc<CachedPage>, u64)>,
    page_bytes: usize,
    round: u64,
}

impl PageCache {
    pub(super) fn new(max_bytes: usize) -> Self {
        let page_bytes = page_bytes();
        Self {
            pages: GenerationCache::new(max_bytes / page_bytes),
            page_bytes,
            round: 0,
        }
    }

    pub(super) fn next_round(&mut self) {
        self.round += 1;
    }

    pub(super) fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Address of the page that holds an address.
    pub(super) fn start_of(&self, address: u64) -> u64 {
        address & !(self.page_bytes as u64 - 1)
    }

    /// The page that begins at a place, unless it may have changed since it was read.
    pub(super) fn get(&mut self, start: CodePlace) -> Option<Arc<CachedPage>> {
        let (page, round) = self.pages.get(&start)?;
        (!page.changeable || round == self.round).then_some(page)
    }

    /// Drops the pages of all spaces but these.
    pub(super) fn retain_spaces(&mut self, spaces: &HashSet<SpaceId>) {
        self.pages.retain(|place| spaces.contains(&place.space));
    }

    pub(super) fn put(&mut self, start: CodePlace, page: CachedPage) -> Arc<CachedPage> {
        let page = Arc::new(page);
        self.pages.put(start, (page.clone(), self.round));
        page
    }
}

/// A map that forgets entries that are not used.
#[derive(Debug)]
pub(crate) struct GenerationCache<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    /// Largest size of one generation, entries.
    half: usize,
}

impl<K: Eq + Hash + Clone, V: Clone> GenerationCache<K, V> {
    /// A cache of at most `max` entries, at least 2.
    pub(crate) fn new(max: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            half: (max / 2).max(1),
        }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.put(key, value.clone());
        Some(value)
    }

    pub(crate) fn put(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    /// Drops the entries whose keys are not wanted any more.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&K) -> bool) {
        self.young.retain(|key, _| is_wanted(key));
        self.old.retain(|key, _| is_wanted(key));
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: CodePlace = CodePlace {
        space: SpaceId(1),
        address: 0,
    };

    #[test]
    fn changeable_pages_live_for_one_round() {
        for changeable in [false, true] {
            let mut pages = PageCache::new(1 << 20);
            let bytes = vec![0; pages.page_bytes].into();
            pages.put(START, CachedPage { bytes, changeable });
            assert!(pages.get(START).is_some());
            pages.next_round();
            assert_eq!(pages.get(START).is_none(), changeable);
        }
    }

    proptest! {
        #[test]
        fn it_never_grows_beyond_its_bound_and_never_lies(
            max in 2usize..20, keys in prop::collection::vec(0u8..40, 0..200)
        ) {
            let mut cache = GenerationCache::new(max);
            for key in keys {
                if let Some(value) = cache.get(&key) {
                    prop_assert_eq!(value, u32::from(key) * 7);
                }
                cache.put(key, u32::from(key) * 7);
                prop_assert_eq!(cache.get(&key), Some(u32::from(key) * 7));
                prop_assert!(cache.len() <= max);
            }
        }
    }

    #[test]
    fn what_is_not_wanted_goes_from_both_generations() {
        let mut cache = GenerationCache::new(8);
        (0..7).for_each(|key| cache.put(key, ()));
        cache.retain(|key| key % 2 == 0);
        assert_eq!(cache.len(), 4);
        assert!((0..7).all(|key| cache.get(&key).is_some() == (key % 2 == 0)));
    }

    #[test]
    fn what_is_used_stays() {
        let mut cache = GenerationCache::new(4);
        for key in 0..50 {
            cache.put(key, ());
            cache.put(1000, ());
            assert!(cache.get(&1000).is_some());
        }
        assert!(cache.get(&0).is_none());
    }
}
