//! Threads into groups of up to `ways` per core, for SMT with more than two.
//!
//! Purpose: hierarchical pairing: threads into pairs, pairs into fours, fours
//! into eights, each step an exact matching at the cost of the larger groups,
//! then a local search that swaps two threads, or moves one to a free place, as
//! long as that is cheaper. Usage: [`group_threads()`];
//! [`exhaustive_grouping()`] for few threads shows what the heuristic leaves. Pitfalls:
//! the problem is NP-hard from three per group on, so this is no optimum.

mod cost;
mod exhaustive;
mod hierarchy;
mod local;

pub use exhaustive::{exhaustive_grouping, visit_partitions};

use super::MatchingError;
use cost::GroupCosts;

/// Groups of threads that share cores, and what that costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadGrouping {
    /// The threads of each core in use, ascending; groups in the order of their first.
    pub groups: Vec<Vec<usize>>,
    /// The sum of the groups' costs.
    pub cost: f64,
}

/// Room to fill, and how long to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRoom {
    /// Most groups that there may be.
    pub cores: usize,
    /// Most threads that a group may have.
    pub ways: usize,
    /// Most swaps that the local search tries; each asks for two costs.
    pub swaps: usize,
}

/// Splits threads 0 to `threads` into groups of low total cost.
///
/// `cost` is asked for the members of a group in ascending order, and must not
/// depend on anything else. What is not a number counts as infinite, and
/// infinity as very dear.
///
/// # Errors
/// [`MatchingError::TooMany`] where there are more threads than places.
pub fn group_threads(
    threads: usize,
    shape: GroupRoom,
    cost: impl FnMut(&[usize]) -> f64,
) -> Result<ThreadGrouping, MatchingError> {
    check(threads, shape)?;
    let mut cost = GroupCosts::new(cost, shape.ways);
    let mut groups = hierarchy::build(threads, shape, &mut cost)?;
    local::split_large_groups(&mut groups, shape, &mut cost);
    local::improve(&mut groups, shape, &mut cost);
    Ok(grouping(groups, &mut cost))
}

fn check(threads: usize, shape: GroupRoom) -> Result<(), MatchingError> {
    let most = shape
        .cores
        .saturating_mul(shape.ways)
        .min(super::MAX_THREADS);
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

#[cfg(test)]
mod tests;
