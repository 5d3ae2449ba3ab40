//! `linux`: the default scheduler, as far as it decides where threads run.
//!
//! - *Fork and exec*: the LLC domain with the fewest runnable threads per CPU, in it the idlest
//!   core, on it the idlest CPU (`sched_balance_find_dst_group`, kernel/sched/fair.c).
//! - *Wake*: the CPU where the thread was if its whole core is idle, else an idle core, else an
//!   idle CPU, of the same LLC domain, else the least loaded there (`select_idle_sibling`).
//! - *New idle*: a CPU that runs dry pulls a waiting thread, from near before from far
//!   (`sched_balance_newidle`).
//! - *Periodic*: every level evens out the number of runnable threads of its groups and nothing
//!   else. A group with an idle CPU tries every so many ms as the level has CPUs (`sd_init`,
//!   `get_sd_balance_interval`; CPUs without a tick have a busy one kick another that is idle to
//!   try
//!   for
//!   them, `nohz_balancer_kick`); a group without one 16 times more rarely (`busy_factor`,
//!   Documentation/scheduler/sched-domains.rst). Threads that wait move at once; one that runs moves
//!   when a group is two ahead and the idle CPU has tried in vain for a while, see [`Attempts`]. So
//!   when programs end on 4 cores of two CPUs, an idle core takes over half of a pair 24 to 32 ms
//!   later.
//!
//! Core types are not known to it, as the literature describes it for its time.
//!
//! `linux-2.6` is the same before kernels searched for idle cores (2.6.33 to 3.0, kernel/sched_fair.c).
//! A thread wakes where it was if that CPU is idle, else on the first idle CPU of the LLC domain,
//! else where it was and waits (`select_idle_sibling`). A CPU pulls only in the moment in which it
//! runs dry, and only if it has lately been idle for [`MIGRATION_COST_PS`] at a time
//! (`idle_balance`). A thread that ran less than that time ago is hot and stays (`task_hot`) until
//! attempts have failed too often (`can_migrate_task`). So a thread that wakes where another runs
//! waits although a core of another LLC domain is idle, until a tick evens that out.

use super::os_topology::SchedulingDomain;
use super::os_view::{idlest_llc, idlest_pu, least_by_score};
use super::{OsInfo, OsModel, OsTopology, OsView, PlacementReason, TICK_MS, next_tick_ms};
use crate::engine::draw::RandomStream;
use crate::engine::pu::MIGRATION_COST_PS;
use std::collections::BTreeMap;

pub(crate) const INFO: OsInfo = OsInfo {
    name: "linux",
    summary: "idlest core at fork and wake-up, evens out runnable counts, knows no core types",
    build: |draw, _| Box::new(Linux::new(draw)),
};

pub(crate) const INFO_2_6: OsInfo = OsInfo {
    name: "linux-2.6",
    summary: "as linux, but wakes threads where they were and pulls none that ran just now",
    build: |draw, _| {
        Box::new(Linux {
            is_2_6: true,
            ..Linux::new(draw)
        })
    },
};

/// Factor by which a group without an idle CPU tries more rarely to even out load.
const BUSY_FACTOR: u64 = 16;

/// The model's state.
#[derive(Clone, Debug)]
pub(crate) struct Linux {
    /// Draws that break ties.
    draw: RandomStream,
    attempts: Attempts,
    is_2_6: bool,
}

impl Linux {
    pub(crate) fn new(draw: RandomStream) -> Self {
        Self {
            draw,
            attempts: Attempts::default(),
            is_2_6: false,
        }
    }

    /// The view without threads that are too hot to be moved.
    fn movable<'a>(&self, view: &OsView<'a>) -> OsView<'a> {
        let hot_ps = if self.is_2_6 { MIGRATION_COST_PS } else { 0 };
        OsView { hot_ps, ..*view }
    }

    fn start_pu(&mut self, view: &OsView<'_>, thread: usize) -> Option<usize> {
        let llc = idlest_llc(view, &mut self.draw, thread)?;
        idlest_pu(view, &mut self.draw, thread, &view.shape.llcs[llc])
    }

    fn wake_pu(&mut self, view: &OsView<'_>, thread: usize) -> Option<usize> {
        let previous = view.previous_pu(thread)?;
        let near = &view.shape.llcs[view.shape.llc[previous]];
        if self.is_2_6 {
            let is_idle = |&pu: &usize| view.load(pu) == 0 && view.allows(thread, pu);
            let mut order = std::iter::once(previous).chain(near.iter().copied());
            let stays = Some(previous).filter(|&pu| view.allows(thread, pu));
            return order.find(is_idle).or(stays);
        }
        let core = &view.shape.cores[view.shape.core[previous]];
        if view.sum(core) == 0 && view.allows(thread, previous) {
            return Some(previous);
        }
        idlest_pu(view, &mut self.draw, thread, near)
    }

    /// The move that evens out a domain, by number, if a group is due and behind another.
    fn even_out(&mut self, view: &OsView<'_>, number: usize, ms: u64) -> Option<(usize, usize)> {
        let domain = &view.shape.domains[number];
        let density = |g: usize| density(view, &domain.groups[g]);
        while let Some(idlest_group) = self.due_group(view, number, ms) {
            let busiest = least_by_score(&mut self.draw, 0..domain.groups.len(), |g| -density(g))?;
            let (from, to) = (&domain.groups[busiest], &domain.groups[idlest_group]);
            if density(busiest) <= density_with_one_more(view, to) {
                return None;
            }
            let source = least_by_score(&mut self.draw, from.iter().copied(), |pu| {
                core::cmp::Reverse(view.load(pu))
            })?;
            let cold = self.movable(view);
            let waiting = to.iter().find_map(|&pu| cold.last_queued_for(source, pu));
            let interval = interval_ms(view, domain, idlest_group);
            let key = (number, idlest_group);
            let insists = |attempts: &mut Attempts| {
                attempts.count_attempt(key, domain.nice_tries, interval, ms)
            };
            if waiting.is_some() || insists(&mut self.attempts) {
                let may = |t: &usize| to.iter().any(|&pu| view.allows(*t, pu));
                let hot = || to.iter().find_map(|&pu| view.last_queued_for(source, pu));
                let current = || view.pus[source].current.filter(may);
                let thread = waiting.or_else(hot).or_else(current)?;
                let target = idlest_pu(view, &mut self.draw, thread, to)?;
                return Some((thread, target));
            }
        }
        None
    }

    /// The idlest of the groups whose turn it is at this moment and that have not tried yet.
    fn due_group(&mut self, view: &OsView<'_>, number: usize, ms: u64) -> Option<usize> {
        let domain = &view.shape.domains[number];
        let attempts = &self.attempts;
        let due = (0..domain.groups.len()).filter(|&g| {
            ms.is_multiple_of(interval_ms(view, domain, g)) && !attempts.has_tried((number, g), ms)
        });
        least_by_score(&mut self.draw, due, |g| density(view, &domain.groups[g]))
    }
}

/// Runnable threads per CPU.
fn density(view: &OsView<'_>, pus: &[usize]) -> f64 {
    view.sum(pus) as f64 / pus.len() as f64
}

/// The same after a thread has come.
fn density_with_one_more(view: &OsView<'_>, pus: &[usize]) -> f64 {
    (view.sum(pus) + 1) as f64 / pus.len() as f64
}

/// The time between two attempts of a group, ms.
fn interval_ms(view: &OsView<'_>, domain: &SchedulingDomain, group: usize) -> u64 {
    let is_idle = |&pu: &usize| view.load(pu) == 0;
    if domain.groups[group].iter().any(is_idle) {
        idle_interval_ms(domain)
    } else {
        BUSY_FACTOR * domain.weight as u64
    }
}

/// The time between two attempts of a group with an idle CPU, ms. Where every CPU is a group, an
/// idle CPU pulls waiting threads at once, so the regular ticks suffice.
fn idle_interval_ms(domain: &SchedulingDomain) -> u64 {
    let weight = domain.weight as u64;
    if domain.groups.iter().all(|group| group.len() == 1) {
        weight.next_multiple_of(TICK_MS)
    } else {
        weight
    }
}

/// The next moment after this one at which a group with an idle CPU tries, ms.
pub(super) fn next_idle_balance_ms(shape: &OsTopology, ms: u64) -> u64 {
    let intervals = shape.domains.iter().map(idle_interval_ms);
    let next = intervals.map(|interval| (ms / interval + 1) * interval);
    next.fold(next_tick_ms(ms), u64::min)
}

impl OsModel for Linux {
    fn choose_pu(&mut self, view: &OsView<'_>, thread: usize, why: PlacementReason) -> usize {
        let near = match why {
            PlacementReason::Start => None,
            PlacementReason::Wake | PlacementReason::Moved => self.wake_pu(view, thread),
        };
        // A mask always names a CPU of the machine, so the search over all domains finds one.
        near.or_else(|| self.start_pu(view, thread)).unwrap_or(0)
    }

    fn pull_thread(&mut self, view: &OsView<'_>, pu: usize) -> Option<usize> {
        let idle = &view.pus[pu];
        let pulls = idle.idle_since == view.now_ps && idle.mean_idle_ps >= MIGRATION_COST_PS;
        if self.is_2_6 && !pulls {
            return None;
        }
        let view = self.movable(view);
        let around = view.shape.domains.iter();
        let mut around = around.filter(|d| d.groups.iter().any(|g| g.contains(&pu)));
        around.find_map(|domain| {
            let pus = domain.groups.iter().flatten().copied();
            let holders = pus.filter(|&other| view.first_queued_for(other, pu).is_some());
            let load = |other| core::cmp::Reverse(view.load(other));
            let source = least_by_score(&mut self.draw, holders, load)?;
            view.first_queued_for(source, pu)
        })
    }

    fn next_balance_ms(&self, view: &OsView<'_>, ms: u64) -> Option<u64> {
        let is_level = view.shape.domains.iter().all(|domain| {
            let groups = domain.groups.iter();
            let busiest = groups.clone().map(|group| density(view, group));
            let busiest = busiest.fold(0.0, f64::max);
            let mut with_one_more = groups.map(|group| density_with_one_more(view, group));
            with_one_more.all(|after| busiest <= after)
        });
        (!is_level).then(|| next_idle_balance_ms(view.shape, ms))
    }

    fn balance_move(&mut self, view: &OsView<'_>, ms: u64) -> Option<(usize, usize)> {
        (0..view.shape.domains.len()).find_map(|number| self.even_out(view, number, ms))
    }
}

/// Failures that are tolerated in addition to a domain's `cache_nice_tries`.
const BORNE: u32 = 2;

/// Attempts of idle CPUs to take over a thread that runs elsewhere while none waits.
///
/// Source: Linux 6.1, kernel/sched/fair.c. A thread that runs cannot be pulled, so an attempt of the
/// balancer fails (`load_balance`, `nr_balance_failed`); only when more than `cache_nice_tries` + 2
/// have failed one after another does it interrupt the other CPU and take its thread
/// (`imbalanced_active_balance`, `active_load_balance_cpu_stop`), after which it counts anew.
///
/// Keys are domain and group, by number. Only one CPU of a group tries (`should_we_balance`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts(BTreeMap<(usize, usize), AttemptRun>);

/// Attempts one interval after another.
#[derive(Clone, Copy, Debug, Default)]
struct AttemptRun {
    last_ms: Option<u64>,
    failed: u32,
}

impl Attempts {
    /// True if a group has tried at this moment.
    pub(crate) fn has_tried(&self, key: (usize, usize), ms: u64) -> bool {
        let run = self.0.get(&key);
        run.is_some_and(|run| run.last_ms == Some(ms))
    }

    /// Counts an attempt to take a thread that runs; returns true if it is one too many, so that
    /// the thread moves.
    pub(crate) fn count_attempt(
        &mut self,
        key: (usize, usize),
        nice_tries: u32,
        interval_ms: u64,
        ms: u64,
    ) -> bool {
        let run = self.0.entry(key).or_default();
        let in_a_row = run.last_ms.is_some_and(|last| last + interval_ms == ms);
        run.failed = if in_a_row { run.failed + 1 } else { 1 };
        run.last_ms = Some(ms);
        let moves = run.failed > nice_tries + BORNE;
        if moves {
            run.failed = 0;
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(at_ms: &[u64]) -> Vec<bool> {
        let mut attempts = Attempts::default();
        let mut try_at = |&ms: &u64| attempts.count_attempt((0, 1), 1, 4, ms);
        at_ms.iter().map(&mut try_at).collect()
    }

    #[test]
    fn fourth_attempt_in_a_row_succeeds() {
        let eight = moves(&[4, 8, 12, 16, 20, 24, 28, 32]);
        let expected = [false, false, false, true, false, false, false, true];
        assert_eq!(eight, expected);
        assert_eq!(moves(&[4, 8, 12, 20, 24]), [false; 5]);
    }
}
