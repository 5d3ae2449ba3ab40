//! Numbers that a source gives single cores, without numbers that cannot be right.
//!
//! Firmware and drivers rate single cores wrongly: far too high, too low, 0, or not at all. A core
//! that is rated unlike the others of its family is a type of its own only if something else
//! speaks for it as well: other caches, a cluster that no other core belongs to, or several cores
//! that are rated alike. A family is what a more trusted source holds to be one type.

use super::super::DiscoveryNotes;
use super::super::caches::{CacheKind, DiscoveredCache};
use consort_core::PuSet;
use std::collections::{BTreeMap, BTreeSet};

/// Least share of a family's cores, as one over this, that makes a type by their ratings alone:
/// Ryzen 7440U's kin have one large core for each three.
const LEAST_SHARE: usize = 4;

/// Caches of a core, as far as they differ between types: level, kind, size, number of cores that
/// share it if it is of level 2.
type CoreCaches = BTreeSet<(u32, CacheKind, Option<u64>, usize)>;

/// The cores, with all that speaks for or against their ratings.
pub(super) struct RatedCores<'a> {
    cores: &'a [PuSet],
    shapes: Vec<CoreCaches>,
    /// Cores of each cache from level 2 up that several cores share.
    clusters: Vec<BTreeSet<usize>>,
}

/// The families of the cores, and whether their order is known.
pub(super) struct CoreFamilies<'a> {
    /// Family of each core; with an order, 0 is the strongest.
    pub(super) of_core: &'a [usize],
    pub(super) are_ordered: bool,
}

impl<'a> RatedCores<'a> {
    pub(super) fn new(cores: &'a [PuSet], caches: &[DiscoveredCache]) -> Self {
        let mut shapes = vec![CoreCaches::new(); cores.len()];
        let mut clusters = Vec::new();
        for cache in caches {
            let of_cache =
                (0..cores.len()).filter(|&i| !cores[i].intersection(&cache.pus).is_empty());
            let members: BTreeSet<usize> = of_cache.collect();
            let sharers = if cache.level == 2 { members.len() } else { 0 };
            for &core in &members {
                shapes[core].insert((cache.level, cache.kind, cache.size_bytes, sharers));
            }
            if cache.level > 1 && members.len() > 1 {
                clusters.push(members);
            }
        }
        Self {
            cores,
            shapes,
            clusters,
        }
    }

    /// Replaces ratings that are missing or contradict everything else by the usual one of the
    /// core's family, and notes which; `None` if too few cores are rated.
    ///
    /// `also` are ratings of another kind, which may confirm these; empty if there are none.
    pub(super) fn repair_ratings(
        &self,
        source: &str,
        ratings: &[Option<u64>],
        also: &[Option<u64>],
        families: &CoreFamilies<'_>,
        notes: &mut DiscoveryNotes,
    ) -> Option<Vec<u64>> {
        let mut mended = self.complete(ratings, families)?;
        for core in (0..mended.len()).filter(|&core| ratings[core].is_none()) {
            let text = format!("not rated by {source}; took {}", mended[core]);
            self.note(core, &text, notes);
        }
        let usual = usual_by_family(&mended, families);
        for (&family, &common) in &usual {
            let members: Vec<usize> = families.members(family).collect();
            let (main, rest): (Vec<_>, Vec<_>) = (groups(&members, &mended).into_iter())
                .partition(|group| median(group, &mended) == common);
            let main: Vec<usize> = main.into_iter().flatten().collect();
            let (kept, strange): (Vec<_>, Vec<_>) = rest.into_iter().partition(|group| {
                families.fits(family, median(group, &mended), &usual)
                    && self.is_type(group, &main, &members, families.are_ordered, also)
            });
            let kept: Vec<u64> = kept.iter().map(|group| median(group, &mended)).collect();
            for core in strange.into_iter().flatten() {
                let rated = mended[core];
                let nearest = kept
                    .iter()
                    .chain([&common])
                    .min_by_key(|r| r.abs_diff(rated));
                let instead = match (families.are_ordered, nearest) {
                    (false, Some(&nearest)) => nearest,
                    _ => common,
                };
                let text = format!(
                    "rated {rated} by {source}, unlike cores of the same kind; took {instead}"
                );
                self.note(core, &text, notes);
                mended[core] = instead;
            }
        }
        Some(mended)
    }

    fn note(&self, core: usize, text: &str, notes: &mut DiscoveryNotes) {
        for pu in self.cores[core].iter() {
            notes.add_about_pu(pu, text);
        }
    }

    /// All ratings; missing ones are taken from cores of the same family and caches.
    fn complete(&self, ratings: &[Option<u64>], families: &CoreFamilies<'_>) -> Option<Vec<u64>> {
        let missing = ratings.iter().filter(|rating| rating.is_none()).count();
        if missing * 2 >= ratings.len() {
            return None;
        }
        let complete = |core: usize| {
            if let Some(rating) = ratings[core] {
                return Some(rating);
            }
            let known = !self.shapes[core].is_empty();
            if !known && !families.are_ordered {
                return None;
            }
            let alike = families.members(families.of_core[core]);
            let alike = alike.filter(|&other| self.shapes[other] == self.shapes[core]);
            let mut rated: Vec<u64> = alike.filter_map(|other| ratings[other]).collect();
            upper_median(&mut rated)
        };
        (0..ratings.len()).map(complete).collect()
    }

    /// Returns true if something else than the ratings speaks for a group of a family's cores,
    /// which are rated alike and unlike the `main` group, as a type of its own.
    fn is_type(
        &self,
        group: &[usize],
        main: &[usize],
        family: &[usize],
        are_ordered: bool,
        also: &[Option<u64>],
    ) -> bool {
        let main_shapes: BTreeSet<&CoreCaches> =
            main.iter().map(|&core| &self.shapes[core]).collect();
        let known = group.iter().all(|&core| !self.shapes[core].is_empty());
        let is_like_main = |&core: &usize| main_shapes.contains(&self.shapes[core]);
        if known && !group.iter().any(is_like_main) {
            return true;
        }
        let touches = |cluster: &&BTreeSet<usize>| group.iter().any(|core| cluster.contains(core));
        let is_within = |cluster: &BTreeSet<usize>| cluster.iter().all(|core| group.contains(core));
        if self.clusters.iter().filter(touches).any(is_within) {
            return true;
        }
        if known && are_ordered {
            return false;
        }
        (group.len() > 1 && group.len() * LEAST_SHARE >= family.len())
            || confirms(also, group, family)
    }
}

/// Returns true if other ratings separate a group of a family's cores from the rest as well.
fn confirms(ratings: &[Option<u64>], group: &[usize], family: &[usize]) -> bool {
    let rated: Option<Vec<u64>> = family.iter().map(|&core| *ratings.get(core)?).collect();
    let Some(rated) = rated else {
        return false;
    };
    let kinds = kinds(&rated);
    let (mut inside, mut outside) = (BTreeSet::new(), BTreeSet::new());
    for (core, kind) in family.iter().zip(kinds) {
        match group.contains(core) {
            true => inside.insert(kind),
            false => outside.insert(kind),
        };
    }
    inside.is_disjoint(&outside)
}

impl CoreFamilies<'_> {
    fn members(&self, family: usize) -> impl Iterator<Item = usize> + '_ {
        let cores = self.of_core.iter().enumerate();
        cores
            .filter(move |(_, of)| **of == family)
            .map(|(core, _)| core)
    }

    /// Returns true if a rating lies where the order of the families has this one.
    fn fits(&self, family: usize, rating: u64, usual: &BTreeMap<usize, u64>) -> bool {
        let in_order = |(&other, &common): (&usize, &u64)| match other.cmp(&family) {
            std::cmp::Ordering::Less => rating < common,
            std::cmp::Ordering::Equal => true,
            std::cmp::Ordering::Greater => rating > common,
        };
        !self.are_ordered || usual.iter().all(in_order)
    }
}

/// The rating in the middle of each family's largest group. Of groups of one size, those are taken
/// that fit the order of the families, or else the strongest.
fn usual_by_family(ratings: &[u64], families: &CoreFamilies<'_>) -> BTreeMap<usize, u64> {
    let all: BTreeSet<usize> = families.of_core.iter().copied().collect();
    let candidates = |family: usize| {
        let members: Vec<usize> = families.members(family).collect();
        let groups = groups(&members, ratings);
        let most = groups.iter().map(Vec::len).max();
        let largest = groups.iter().filter(|group| Some(group.len()) == most);
        largest
            .map(|group| median(group, ratings))
            .collect::<Vec<u64>>()
    };
    let candidates: Vec<Vec<u64>> = all.iter().map(|&family| candidates(family)).collect();
    let strongest = || {
        candidates
            .iter()
            .filter_map(|c| c.first().copied())
            .collect()
    };
    let usual = match families.are_ordered {
        true => choose_descending(&candidates, u64::MAX).unwrap_or_else(strongest),
        false => strongest(),
    };
    all.into_iter().zip(usual).collect()
}

/// One of each list, each less than the one before.
fn choose_descending(lists: &[Vec<u64>], below: u64) -> Option<Vec<u64>> {
    let Some((first, rest)) = lists.split_first() else {
        return Some(Vec::new());
    };
    let fitting = first.iter().filter(|&&value| value < below);
    fitting.copied().find_map(|value| {
        let mut all = vec![value];
        all.extend(choose_descending(rest, value)?);
        Some(all)
    })
}

/// Cores that are rated alike.
fn groups(cores: &[usize], ratings: &[u64]) -> Vec<Vec<usize>> {
    let values: Vec<u64> = cores.iter().map(|&core| ratings[core]).collect();
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (kind, &core) in kinds(&values).into_iter().zip(cores) {
        groups.entry(kind).or_default().push(core);
    }
    groups.into_values().collect()
}

fn median(cores: &[usize], ratings: &[u64]) -> u64 {
    let mut values: Vec<u64> = cores.iter().map(|&core| ratings[core]).collect();
    upper_median(&mut values).unwrap_or(0)
}

/// The value in the middle, the higher of two.
pub(super) fn upper_median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Ratio of a value to the next larger one, in percent, from which on the two are of one kind.
///
/// Preferred cores of one type (Intel Turbo Boost Max 3.0, AMD preferred cores) are ranked in steps
/// of a few percent, a ladder that may span a quarter of the scale; clusters of phones that share a
/// microarchitecture are clocked 12 percent apart or more.
const SAME_KIND_PERCENT: u64 = 90;

/// The kind of each value, 0 for the largest: a new kind begins where the next
/// smaller value is less than 90 percent of its neighbour.
///
/// Pitfall: a ladder may show a gap if most of its steps are offline.
pub(crate) fn kinds(values: &[u64]) -> Vec<usize> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    sorted.dedup();
    let gap = |pair: &[u64]| {
        u128::from(pair[1]) * 100 < u128::from(pair[0]) * u128::from(SAME_KIND_PERCENT)
    };
    let last_of_kinds: Vec<u64> = sorted.windows(2).filter(|p| gap(p)).map(|p| p[0]).collect();
    let kind = |value: &u64| last_of_kinds.iter().filter(|&last| value < last).count();
    values.iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn types_are_distinguished_but_preferred_cores_are_not() {
        assert_eq!(kinds(&[1024, 446, 1024, 446]), [0, 1, 0, 1]);
        assert_eq!(kinds(&[325, 871, 1024]), [2, 1, 0]);
        assert_eq!(kinds(&[166, 161, 156, 151, 146, 141, 136, 131]), [0; 8]);
        assert_eq!(kinds(&[66, 62, 39]), [0, 0, 1]);
        assert_eq!(kinds(&[0, 0]), [0, 0]);
        assert!(kinds(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn kinds_follow_the_order_of_the_values(values in prop::collection::vec(any::<u64>(), 0..12)) {
            let kinds = kinds(&values);
            for (a, x) in values.iter().zip(&kinds) {
                for (b, y) in values.iter().zip(&kinds) {
                    prop_assert!(a < b || x <= y);
                }
            }
        }
    }
}
