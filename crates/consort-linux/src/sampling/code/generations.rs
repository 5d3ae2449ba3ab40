//! A bounded cache in two generations.
//!
//! New and used entries are in the young generation. When that is half the bound, it becomes the
//! old one and the old one is dropped, so an entry goes when it was not used for a whole
//! generation. This is cheaper than keeping an order, and the bound always holds.

use std::collections::HashMap;
use std::hash::Hash;

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
