//! Pairs, pairs of pairs, and so on.

use super::super::{MatchingError, PairCosts, pairs::perfect_matching};
use super::GroupRoom;
use super::cost::GroupCosts;

/// Groups after enough rounds of pairing that there are no more than cores. Where `ways` is no
/// power of two a group may be too large.
pub(super) fn build<F: FnMut(&[usize]) -> f64>(
    threads: usize,
    shape: GroupRoom,
    cost: &mut GroupCosts<F>,
) -> Result<Vec<Vec<usize>>, MatchingError> {
    let mut groups: Vec<Vec<usize>> = (0..threads).map(|thread| vec![thread]).collect();
    while groups.len() > shape.cores {
        // Idle places fill what pairing up to this size leaves, so that half of it are enough.
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
