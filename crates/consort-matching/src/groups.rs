//! Groups of up to `ways` threads per core, for SMT with more than two.
//!
//! Hierarchical pairing joins threads into pairs, pairs into fours, fours into eights, each step an
//! exact matching at the cost of the larger groups. A local search then swaps two threads, or moves
//! one to a free place, as long as that is cheaper. The problem is NP-hard from three per group on,
//! so the result of [`group_threads`] is no optimum; for few threads [`exhaustive_grouping`]
//! measures the gap.

use crate::pairs::perfect_matching;
use crate::{MAX_THREADS, MatchingError, PairCosts};

/// Groups of threads that share cores, and their cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadGrouping {
    /// Threads of each used core, ascending; groups in the order of their first thread.
    pub groups: Vec<Vec<usize>>,
    /// The sum of the groups' costs.
    pub cost: f64,
}

/// Number and size of groups, and effort of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRoom {
    /// Most groups.
    pub cores: usize,
    /// Most threads per group.
    pub ways: usize,
    /// Most swaps that the local search tries; each needs two costs.
    pub swaps: usize,
}

/// Splits threads 0 to `threads` into groups of low total cost.
///
/// `cost` receives the members of a group in ascending order, and must not depend on anything else.
/// NaN counts as infinite.
///
/// # Errors
/// [`MatchingError::TooMany`] if there are more threads than places.
pub fn group_threads(
    threads: usize,
    shape: GroupRoom,
    cost: impl FnMut(&[usize]) -> f64,
) -> Result<ThreadGrouping, MatchingError> {
    check(threads, shape)?;
    let mut cost = GroupCosts::new(cost, shape.ways);
    let mut groups = build_hierarchy(threads, shape, &mut cost)?;
    split_large_groups(&mut groups, shape, &mut cost);
    improve_by_swaps(&mut groups, shape, &mut cost);
    Ok(grouping(groups, &mut cost))
}

fn check(threads: usize, shape: GroupRoom) -> Result<(), MatchingError> {
    let most = shape.cores.saturating_mul(shape.ways).min(MAX_THREADS);
    if threads > most {
        return Err(MatchingError::TooMany { threads, most });
    }
    Ok(())
}

fn grouping<F: FnMut(&[usize]) -> f64>(
    mut groups: Vec<Vec<usize>>,
    cost: &mut GroupCosts<F>,
) -> ThreadGrouping {
    groups.retain(|group| !group.is_empty());
    groups.sort_unstable();
    ThreadGrouping {
        cost: groups.iter().map(|group| cost.cost(group)).sum(),
        groups,
    }
}

/// The caller's cost of groups, made safe to compare: empty groups cost nothing, too large groups
/// are infinitely expensive.
struct GroupCosts<F> {
    ask: F,
    ways: usize,
}

impl<F: FnMut(&[usize]) -> f64> GroupCosts<F> {
    fn new(ask: F, ways: usize) -> Self {
        Self { ask, ways }
    }

    /// Cost of a group in any order.
    fn cost(&mut self, group: &[usize]) -> f64 {
        if group.is_empty() {
            return 0.0;
        }
        if group.len() > self.ways {
            return f64::INFINITY;
        }
        let mut members = group.to_vec();
        members.sort_unstable();
        let cost = (self.ask)(&members);
        // Minus infinity has no place in a sum, so such a group is infinitely expensive too.
        if cost.is_nan() || cost == f64::NEG_INFINITY {
            f64::INFINITY
        } else {
            cost
        }
    }

    fn joint_cost(&mut self, first: &[usize], second: &[usize]) -> f64 {
        self.cost(&[first, second].concat())
    }
}

/// Pairs threads, pairs of threads, and so on, until there are no more groups than cores. If `ways`
/// is no power of two a group may be too large.
fn build_hierarchy<F: FnMut(&[usize]) -> f64>(
    threads: usize,
    shape: GroupRoom,
    cost: &mut GroupCosts<F>,
) -> Result<Vec<Vec<usize>>, MatchingError> {
    let mut groups: Vec<Vec<usize>> = (0..threads).map(|thread| vec![thread]).collect();
    while groups.len() > shape.cores {
        // Idle places fill the groups up to a size that pairing can halve down to the cores.
        let places = places(groups.len(), shape.cores);
        groups.resize(places, Vec::new());
        groups = halve(&groups, cost)?;
    }
    Ok(groups)
}

/// The least number of cores times a power of two that has room.
fn places(groups: usize, cores: usize) -> usize {
    let mut places = cores;
    while places < groups {
        places *= 2;
    }
    places
}

fn halve<F: FnMut(&[usize]) -> f64>(
    groups: &[Vec<usize>],
    cost: &mut GroupCosts<F>,
) -> Result<Vec<Vec<usize>>, MatchingError> {
    let costs = PairCosts::from_fn(groups.len(), |first, second| {
        cost.joint_cost(&groups[first], &groups[second])
    })?;
    let (mates, _) = perfect_matching(&costs, &[]);
    let once = mates
        .iter()
        .enumerate()
        .filter(|(first, second)| first < *second);
    Ok(once
        .map(|(first, &second)| [groups[first].as_slice(), &groups[second]].concat())
        .collect())
}

/// Least improvement as a share of the groups' cost; anything below is rounding.
const WORTHWHILE: f64 = 1e-12;

/// Splits groups that are too large: moves one thread at a time to where it costs least.
fn split_large_groups<F: FnMut(&[usize]) -> f64>(
    groups: &mut Vec<Vec<usize>>,
    shape: GroupRoom,
    cost: &mut GroupCosts<F>,
) {
    groups.resize(shape.cores, Vec::new());
    while let Some(from) = groups.iter().position(|group| group.len() > shape.ways) {
        let Some(thread) = groups[from].pop() else {
            return;
        };
        let added = |to: usize, cost: &mut GroupCosts<F>| {
            cost.joint_cost(&groups[to], &[thread]) - cost.cost(&groups[to])
        };
        let open: Vec<usize> = (0..groups.len())
            .filter(|&to| groups[to].len() < shape.ways && to != from)
            .collect();
        let priced = open.into_iter().map(|to| (added(to, cost), to));
        let least = priced.min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, to)) = least {
            groups[to].push(thread);
        }
    }
}

/// A place in a group; the place behind the last thread is free.
type GroupPosition = (usize, usize);

/// Makes, thread by thread, the best swap with a thread or free place elsewhere, until no swap pays
/// or the tries are used up.
fn improve_by_swaps<F: FnMut(&[usize]) -> f64>(
    groups: &mut [Vec<usize>],
    shape: GroupRoom,
    cost: &mut GroupCosts<F>,
) {
    let mut known: Vec<f64> = groups.iter().map(|group| cost.cost(group)).collect();
    let mut tries = shape.swaps;
    let mut changed = true;
    while changed && tries > 0 {
        changed = false;
        for from in 0..groups.len() {
            for at in 0..groups[from].len() {
                // A move may have shortened this group.
                if at >= groups[from].len() {
                    break;
                }
                let best = best_swap(groups, &known, (from, at), shape, &mut tries, cost);
                if let Some((to, ours, theirs)) = best {
                    swap(groups, (from, at), to);
                    (known[from], known[to.0]) = (ours, theirs);
                    changed = true;
                }
            }
        }
    }
}

/// Finds the swap that saves most, with the costs of both groups after it.
fn best_swap<F: FnMut(&[usize]) -> f64>(
    groups: &mut [Vec<usize>],
    known: &[f64],
    from: GroupPosition,
    shape: GroupRoom,
    tries: &mut usize,
    cost: &mut GroupCosts<F>,
) -> Option<(GroupPosition, f64, f64)> {
    let mut best = None;
    let mut least = 0.0;
    for other in (0..groups.len()).filter(|&other| other != from.0) {
        for at in 0..(groups[other].len() + 1).min(shape.ways) {
            if *tries == 0 {
                return best;
            }
            *tries -= 1;
            let to = (other, at);
            let undo = swap(groups, from, to);
            let (ours, theirs) = (cost.cost(&groups[from.0]), cost.cost(&groups[other]));
            swap_back(groups, from, to, undo);
            let before = known[from.0] + known[other];
            let change = ours + theirs - before;
            if change < least - WORTHWHILE * before.abs() {
                least = change;
                best = Some((to, ours, theirs));
            }
        }
    }
    best
}

/// Kind of a swap: two threads exchanged, or one moved to a free place.
#[derive(Clone, Copy)]
enum SwapKind {
    Exchanged,
    Moved,
}

fn swap(groups: &mut [Vec<usize>], from: GroupPosition, to: GroupPosition) -> SwapKind {
    let thread = groups[from.0][from.1];
    match groups[to.0].get_mut(to.1) {
        Some(other) => {
            groups[from.0][from.1] = std::mem::replace(other, thread);
            SwapKind::Exchanged
        }
        None => {
            groups[from.0].remove(from.1);
            groups[to.0].push(thread);
            SwapKind::Moved
        }
    }
}

fn swap_back(groups: &mut [Vec<usize>], from: GroupPosition, to: GroupPosition, done: SwapKind) {
    match done {
        SwapKind::Exchanged => {
            swap(groups, from, to);
        }
        SwapKind::Moved => {
            if let Some(thread) = groups[to.0].pop() {
                groups[from.0].insert(from.1, thread);
            }
        }
    }
}

/// Most threads of an exhaustive search; sixteen in fours have 2,627,625 partitions.
const MOST: usize = 16;

/// Finds the cheapest grouping by trying all, as a measure for [`group_threads`].
///
/// # Errors
/// [`MatchingError::TooMany`] for more than 16 threads, or more than there are places.
pub fn exhaustive_grouping(
    threads: usize,
    shape: GroupRoom,
    cost: impl FnMut(&[usize]) -> f64,
) -> Result<ThreadGrouping, MatchingError> {
    let mut cost = GroupCosts::new(cost, shape.ways);
    // Costs by the set of members; `visit_partitions` visits nothing if the table would be too
    // large.
    let mut known = vec![None; 1 << threads.min(MOST)];
    let mut best: Option<(f64, Vec<Vec<usize>>)> = None;
    visit_partitions(threads, shape, |groups| {
        let mut price = |group: &Vec<usize>| {
            let key = group
                .iter()
                .fold(0, |mask: usize, thread| mask | 1 << thread);
            *known[key].get_or_insert_with(|| cost.cost(group))
        };
        let total = groups.iter().map(&mut price).sum();
        if best.as_ref().is_none_or(|(least, _)| total < *least) {
            best = Some((total, groups.to_vec()));
        }
    })?;
    let (_, groups) = best.unwrap_or_default();
    Ok(grouping(groups, &mut cost))
}

/// Visits each split of threads into at most `cores` groups of at most `ways` once; groups have no
/// order. With n threads filling c cores there are n! / (c! ((n/c)!)^c). Returns their number.
///
/// # Errors
/// [`MatchingError::TooMany`] for more than 16 threads, or more than there are places.
pub fn visit_partitions(
    threads: usize,
    shape: GroupRoom,
    mut visit: impl FnMut(&[Vec<usize>]),
) -> Result<u64, MatchingError> {
    check(threads, shape)?;
    if threads > MOST {
        return Err(MatchingError::TooMany {
            threads,
            most: MOST,
        });
    }
    Ok(place(0, threads, shape, &mut Vec::new(), &mut visit))
}

/// Puts thread `next` and those after it into every group with room, and into one new group.
fn place(
    next: usize,
    threads: usize,
    shape: GroupRoom,
    groups: &mut Vec<Vec<usize>>,
    visit: &mut impl FnMut(&[Vec<usize>]),
) -> u64 {
    if next == threads {
        visit(groups);
        return 1;
    }
    let mut count = 0;
    for group in 0..groups.len() {
        if groups[group].len() < shape.ways {
            groups[group].push(next);
            count += place(next + 1, threads, shape, groups, visit);
            groups[group].pop();
        }
    }
    if groups.len() < shape.cores {
        groups.push(vec![next]);
        count += place(next + 1, threads, shape, groups, visit);
        groups.pop();
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    const SWAPS: usize = 100_000;

    /// A cost of groups that grows faster than the sum over pairs.
    fn crowded(threads: usize, seed: u64) -> impl Fn(&[usize]) -> f64 {
        let mut rng = Pcg64::seed_from_u64(seed);
        let heavy: Vec<[f64; 3]> = (0..threads)
            .map(|_| std::array::from_fn(|_| rng.random()))
            .collect();
        move |group| {
            let sums: [f64; 3] = std::array::from_fn(|c| group.iter().map(|&t| heavy[t][c]).sum());
            group.len() as f64 + sums.iter().map(|sum| sum * sum * sum).sum::<f64>()
        }
    }

    fn factorial(n: u64) -> u64 {
        (1..=n).product()
    }

    #[test]
    fn partitions_match_the_formula() {
        for (cores, ways) in [(1, 4), (2, 4), (3, 4), (5, 2), (4, 3), (2, 8)] {
            let threads = cores * ways;
            let shape = GroupRoom {
                cores,
                ways,
                swaps: 0,
            };
            let mut visited = 0;
            let count = visit_partitions(threads, shape, |_| visited += 1).unwrap();
            let (n, c, w) = (threads as u64, cores as u64, ways as u64);
            let expected = factorial(n) / (factorial(c) * factorial(w).pow(c as u32));
            assert_eq!(
                (count, visited),
                (expected, expected),
                "{cores} cores of {ways}"
            );
        }
    }

    proptest! {
        #[test]
        fn each_thread_is_in_one_group_that_fits(
            cores in 1usize..6, ways in 1usize..9, share in 0.0f64..=1.0, seed: u64, swaps in 0usize..2_000,
        ) {
            let threads = ((cores * ways) as f64 * share) as usize;
            let shape = GroupRoom { cores, ways, swaps };
            let found = group_threads(threads, shape, crowded(threads, seed)).unwrap();
            prop_assert!(found.groups.len() <= cores);
            prop_assert!(found.groups.iter().all(|group| (1..=ways).contains(&group.len())));
            let mut all: Vec<usize> = found.groups.concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..threads).collect::<Vec<_>>());
        }

        #[test]
        fn local_search_never_raises_the_cost(seed: u64, swaps in 0usize..3_000) {
            let cost = crowded(12, seed);
            let with = |swaps| group_threads(12, GroupRoom { cores: 3, ways: 4, swaps }, &cost).unwrap().cost;
            prop_assert!(with(swaps) <= with(0) + 1e-9);
        }
    }

    #[test]
    fn nan_counts_as_infinite() {
        let shape = GroupRoom {
            cores: 2,
            ways: 2,
            swaps: SWAPS,
        };
        let cost = |group: &[usize]| if group == [0, 1] { f64::NAN } else { 1.0 };
        let found = group_threads(4, shape, cost).unwrap();
        assert!(found.cost.is_finite() && !found.groups.contains(&vec![0, 1]));
        assert!(group_threads(5, shape, |_| 1.0).is_err());
    }
}
