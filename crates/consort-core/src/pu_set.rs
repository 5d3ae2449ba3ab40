//! Sets of CPUs, written as Linux writes CPU lists: `0-3,8`.

use crate::ids::PuId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

const WORD_BITS: u32 = u64::BITS;

/// Highest CPU number that a set accepts, so that a typing error does not allocate gigabytes.
pub const MAX_PU: u32 = 65_535;

/// A set of CPUs of any size.
///
/// Two sets with the same members are equal however they were made.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PuSet {
    /// Bit `i` of word `w` is CPU `64 w + i`; the last word is never zero.
    words: Vec<u64>,
}

/// Fault of a CPU list.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PuSetError {
    /// A field is not a number or a range.
    #[error("'{0}' is not a CPU number or a range such as 0-3")]
    Field(String),
    /// A range runs backwards.
    #[error("range {0}-{1} runs backwards")]
    Backwards(u32, u32),
    /// A CPU number is beyond [`MAX_PU`].
    #[error("CPU {0} is beyond the highest supported, {MAX_PU}")]
    TooHigh(u32),
}

impl PuSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a CPU; numbers beyond [`MAX_PU`] are ignored.
    pub fn insert(&mut self, pu: PuId) {
        if pu.0 > MAX_PU {
            return;
        }
        let word = (pu.0 / WORD_BITS) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (pu.0 % WORD_BITS);
    }

    /// Removes a CPU.
    pub fn remove(&mut self, pu: PuId) {
        if let Some(word) = self.words.get_mut((pu.0 / WORD_BITS) as usize) {
            *word &= !(1 << (pu.0 % WORD_BITS));
        }
        self.trim();
    }

    /// Returns true if the CPU is a member.
    pub fn contains(&self, pu: PuId) -> bool {
        self.words
            .get((pu.0 / WORD_BITS) as usize)
            .is_some_and(|word| word & (1 << (pu.0 % WORD_BITS)) != 0)
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Returns true if there is no member.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let words = self.words.iter().zip(&other.words).map(|(a, b)| a & b);
        Self::from_words(words.collect())
    }

    /// Members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let len = self.words.len().max(other.words.len());
        Self::from_words((0..len).map(|i| self.word(i) | other.word(i)).collect())
    }

    /// Members of this set that are missing in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let words = self.words.iter().enumerate();
        Self::from_words(words.map(|(i, a)| a & !other.word(i)).collect())
    }

    /// Returns true if every member is also in the other set.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.words
            .iter()
            .enumerate()
            .all(|(i, a)| a & !other.word(i) == 0)
    }

    /// The member with the lowest number.
    pub fn first(&self) -> Option<PuId> {
        self.iter().next()
    }

    /// Members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = PuId> + '_ {
        self.words.iter().zip(0u32..).flat_map(|(&word, w)| {
            (0..WORD_BITS)
                .filter(move |bit| word & (1 << bit) != 0)
                .map(move |bit| PuId(w * WORD_BITS + bit))
        })
    }

    fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }

    fn from_words(words: Vec<u64>) -> Self {
        let mut set = Self { words };
        set.trim();
        set
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }

    /// Adds a field of a list: `8`, `0-3`, or `0-31:2/8`, the first two of every eight, which Linux
    /// accepts on its command line.
    fn insert_field(&mut self, field: &str) -> Result<(), PuSetError> {
        let bad = || PuSetError::Field(field.to_owned());
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| bad());
        let (range, stride) = match field.split_once(':') {
            Some((range, stride)) => (range, Some(stride.split_once('/').ok_or_else(bad)?)),
            None => (field, None),
        };
        let (low, high) = match range.split_once('-') {
            Some((low, high)) => (number(low)?, number(high)?),
            None if stride.is_some() => return Err(bad()),
            None => (number(range)?, number(range)?),
        };
        let (used, group) = match stride {
            Some((used, group)) => (number(used)?, number(group)?),
            None => (1, 1),
        };
        if group == 0 || used > group {
            return Err(bad());
        }
        if low > high {
            return Err(PuSetError::Backwards(low, high));
        }
        if high > MAX_PU {
            return Err(PuSetError::TooHigh(high));
        }
        let members = (low..=high).filter(|pu| (pu - low) % group < used);
        members.for_each(|pu| self.insert(PuId(pu)));
        Ok(())
    }

    /// Runs of consecutive members, each as (first, last).
    fn runs(&self) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for PuId(pu) in self.iter() {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == pu => *last = pu,
                _ => runs.push((pu, pu)),
            }
        }
        runs
    }
}

impl FromIterator<PuId> for PuSet {
    fn from_iter<I: IntoIterator<Item = PuId>>(members: I) -> Self {
        let mut set = Self::new();
        members.into_iter().for_each(|pu| set.insert(pu));
        set
    }
}

impl From<PuId> for PuSet {
    fn from(pu: PuId) -> Self {
        Self::from_iter([pu])
    }
}

impl FromStr for PuSet {
    type Err = PuSetError;

    /// Reads a Linux CPU list; blank text is the empty set.
    fn from_str(text: &str) -> Result<Self, PuSetError> {
        let mut set = Self::new();
        let fields = text.trim().split(',').filter(|f| !f.trim().is_empty());
        for field in fields {
            set.insert_field(field.trim())?;
        }
        Ok(set)
    }
}

impl fmt::Display for PuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last)) in self.runs().into_iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for PuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl Serialize for PuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn set(text: &str) -> PuSet {
        text.parse().unwrap()
    }

    #[test]
    fn lists_are_read_and_written_as_linux_does() {
        for text in ["", "0", "0-3", "0-3,8", "1,3,5", "0-63,128-191"] {
            assert_eq!(set(text).to_string(), text);
        }
        assert_eq!(set(" 3, 1-2 \n").to_string(), "1-3");
    }

    #[test]
    fn strides_follow_linux() {
        assert_eq!(set("0-7:1/2").to_string(), "0,2,4,6");
        assert_eq!(set("1-10:2/5,20").to_string(), "1-2,6-7,20");
        for text in ["0-7:2", "0-7:3/2", "0-7:1/0", "0-7:/", "3:1/2"] {
            let error = text.parse::<PuSet>().unwrap_err();
            assert_eq!(error, PuSetError::Field(text.into()));
        }
    }

    #[test]
    fn invalid_lists_are_explained() {
        let error = |text: &str| text.parse::<PuSet>().unwrap_err();
        assert_eq!(error("1,x"), PuSetError::Field("x".into()));
        assert_eq!(error("3-1"), PuSetError::Backwards(3, 1));
        assert_eq!(error("0-99999999"), PuSetError::TooHigh(99_999_999));
        assert_eq!(error("-1"), PuSetError::Field("-1".into()));
    }

    #[test]
    fn removing_the_last_member_leaves_the_empty_set() {
        let mut s = set("200");
        s.remove(PuId(200));
        assert_eq!(s, PuSet::new());
        assert!(s.is_empty());
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_of_numbers(
            a in prop::collection::btree_set(0u32..300, 0..40),
            b in prop::collection::btree_set(0u32..300, 0..40),
        ) {
            let pu = |s: &BTreeSet<u32>| s.iter().map(|&n| PuId(n)).collect::<PuSet>();
            let back = |s: &PuSet| s.iter().map(|p| p.0).collect::<BTreeSet<_>>();
            let (x, y) = (pu(&a), pu(&b));
            prop_assert_eq!(back(&x.union(&y)), &a | &b);
            prop_assert_eq!(back(&x.intersection(&y)), &a & &b);
            prop_assert_eq!(back(&x.difference(&y)), &a - &b);
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.to_string().parse::<PuSet>().unwrap(), x);
        }
    }
}
