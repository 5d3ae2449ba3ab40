//! The upper of two levels: threads are dealt to NUMA nodes before PUs inside a node.
//!
//! A thread's memory is where it has run, so it stays on its node as long as
//! that node does not get more than its share. Shares are proportional to the
//! nodes' PUs, and are counted twice: for FPU-heavy threads and for all
//! threads, so that no node collects the heavy ones.

use super::history::PlaceHistory;
use super::ranking::RankedThread;
use crate::pu_set::PuSet;
use crate::topology::Topology;

/// Splits a ranking into one queue per domain, each still in ranking order.
pub(super) fn divide_by_node<'a>(
    topology: &Topology,
    domains: &[PuSet],
    ranked: Vec<RankedThread<'a>>,
    heavy: f64,
    history: &PlaceHistory,
) -> Vec<Vec<RankedThread<'a>>> {
    let heavies = ranked.iter().filter(|c| c.fp_usage >= heavy).count();
    let total = topology.pus().len();
    let mut heavy_room = shares(domains, heavies, total);
    let mut room = shares(domains, ranked.len(), total);
    let mut queues: Vec<Vec<RankedThread<'a>>> = domains.iter().map(|_| Vec::new()).collect();
    for candidate in ranked {
        let is_heavy = candidate.fp_usage >= heavy;
        let home = home(&candidate, domains, history);
        let limit = if is_heavy { &mut heavy_room } else { &mut room };
        let node = choose_node(&candidate, domains, home, limit);
        limit[node] -= 1;
        if is_heavy {
            room[node] -= 1;
        }
        queues[node].push(candidate);
    }
    queues
}

/// Number of `threads` that each domain may take: its share of the PUs, rounded up.
fn shares(domains: &[PuSet], threads: usize, total_pus: usize) -> Vec<isize> {
    let share = |domain: &PuSet| (threads * domain.len()).div_ceil(total_pus.max(1)) as isize;
    domains.iter().map(share).collect()
}

/// The domain where the thread's memory probably is: of the PU that it used most, else where it
/// was last seen.
fn home(candidate: &RankedThread<'_>, domains: &[PuSet], history: &PlaceHistory) -> Option<usize> {
    let most_used = history.most_used_pus(candidate.id()).first().copied();
    let pu = most_used.or(candidate.thread.last_pu)?;
    domains.iter().position(|domain| domain.contains(pu))
}

/// Returns the thread's home if it has room, else the domain with the most room among those that
/// the thread may use.
fn choose_node(
    candidate: &RankedThread<'_>,
    domains: &[PuSet],
    home: Option<usize>,
    room: &[isize],
) -> usize {
    let usable = |&node: &usize| {
        !candidate
            .thread
            .original
            .intersection(&domains[node])
            .is_empty()
    };
    let at_home = home.filter(|node| room[*node] > 0 && usable(node));
    let roomiest = || {
        let nodes = (0..domains.len()).filter(usable);
        nodes.max_by_key(|&node| (room[node], std::cmp::Reverse(node)))
    };
    at_home.or_else(roomiest).unwrap_or(0)
}
