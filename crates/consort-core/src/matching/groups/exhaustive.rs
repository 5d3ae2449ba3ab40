//! Every way to split few threads into groups.

use super::cost::GroupCosts;
use super::{GroupRoom, MatchingError, ThreadGrouping, check, grouping};

/// Most threads for which all partitions are visited; sixteen in fours are 2,627,625.
const MOST: usize = 16;

/// The cheapest grouping, by trying all; [`super::group_threads`] is measured against it.
///
/// # Errors
/// [`MatchingError::TooMany`] for more than 16 threads, or more than there are places.
pub fn exhaustive_grouping(
    threads: usize,
    shape: GroupRoom,
    cost: impl FnMut(&[usize]) -> f64,
) -> Result<ThreadGrouping, MatchingError> {
    let mut cost = GroupCosts::new(cost, shape.ways);
    // By the set of members; `partitions` visits nothing where this would be too long.
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
