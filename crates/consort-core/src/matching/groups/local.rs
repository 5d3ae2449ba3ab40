//! Local search: small changes that pay.

use super::GroupRoom;
use super::cost::GroupCosts;

/// An improvement below this share of the groups' cost is rounding.
const WORTHWHILE: f64 = 1e-12;

/// Brings groups that are too large down to size: one thread at a time goes where it costs least.
pub(super) fn split_large_groups<F: FnMut(&[usize]) -> f64>(
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

/// A place in a group; the one behind the last thread is free.
type GroupPosition = (usize, usize);

/// Takes, thread by thread, the best swap with a thread or free place elsewhere, until none pays or
/// the tries are used up.
pub(super) fn improve<F: FnMut(&[usize]) -> f64>(
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
                // A move may have shortened the group under way.
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

/// The swap that saves most, with the costs of both groups after it.
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
