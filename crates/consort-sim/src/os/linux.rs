//! `linux`: the default scheduler, as far as it decides who runs where.
//!
//! - *Fork and exec*: the LLC domain with the fewest runnable threads per PU, in it the idlest
//!   core, on it the idlest PU (`sched_balance_find_dst_group`, kernel/sched/fair.c).
//! - *Wake*: the PU where the thread was if its whole core is idle, else an idle core, else an
//!   idle PU, of the same LLC domain, else the least loaded there (`select_idle_sibling`).
//! - *New idle*: a PU that runs dry pulls a waiting thread, from near before from far
//!   (`sched_balance_newidle`).
//! - *Periodic*: every level evens out the number of runnable threads of its groups and nothing
//!   else; a running thread is moved when nobody waits and a group is still two ahead
//!   (`sched_balance_rq`, active balance). A busy PU balances a level every 16 ms times the
//!   level's number of PUs (`busy_factor`, Documentation/scheduler/sched-domains.rst).
//!
//! Core types are not known to it, as the literature describes it for its time.

use super::idlest::{idlest, idlest_llc, least};
use super::shape::Domain;
use super::{Arrival, OsInfo, OsModel, View};
use crate::engine::Draw;

pub(crate) const INFO: OsInfo = OsInfo {
    name: "linux",
    summary: "idlest core at fork and wake-up, evens out runnable counts, knows no core types",
    build: |draw| Box::new(Linux::new(draw)),
};

/// The model's state: where ties fall.
#[derive(Clone, Debug)]
pub(crate) struct Linux {
    draw: Draw,
}

impl Linux {
    pub(crate) fn new(draw: Draw) -> Self {
        Self { draw }
    }

    fn start(&mut self, view: &View<'_>, thread: usize) -> Option<usize> {
        let llc = idlest_llc(view, &mut self.draw, thread)?;
        idlest(view, &mut self.draw, thread, &view.shape.llcs[llc])
    }

    fn wake(&mut self, view: &View<'_>, thread: usize) -> Option<usize> {
        let previous = view.previous(thread)?;
        let core = &view.shape.cores[view.shape.core[previous]];
        if view.sum(core) == 0 && view.allows(thread, previous) {
            return Some(previous);
        }
        let near = &view.shape.llcs[view.shape.llc[previous]];
        idlest(view, &mut self.draw, thread, near)
    }

    /// The move that evens out one domain, if it is uneven.
    fn even_out(&mut self, view: &View<'_>, domain: &Domain) -> Option<(usize, usize)> {
        let density = |g: usize| {
            let pus = &domain.groups[g];
            view.sum(pus) as f64 / pus.len() as f64
        };
        let groups = 0..domain.groups.len();
        let busiest = least(&mut self.draw, groups.clone(), |g| -density(g))?;
        let idlest_group = least(&mut self.draw, groups, density)?;
        let (from, to) = (&domain.groups[busiest], &domain.groups[idlest_group]);
        let after = (view.sum(to) + 1) as f64 / to.len() as f64;
        if density(busiest) <= after {
            return None;
        }
        let source = least(&mut self.draw, from.iter().copied(), |pu| {
            core::cmp::Reverse(view.load(pu))
        })?;
        let thread = movable(view, source, to)?;
        let target = idlest(view, &mut self.draw, thread, to)?;
        Some((thread, target))
    }
}

/// A waiting thread of a PU that may go to one of `to`, else the running one.
fn movable(view: &View<'_>, source: usize, to: &[usize]) -> Option<usize> {
    let waiting = to.iter().find_map(|&pu| view.last_for(source, pu));
    let may = |t: &usize| to.iter().any(|&pu| view.allows(*t, pu));
    waiting.or_else(|| view.pus[source].current.filter(may))
}

impl OsModel for Linux {
    fn place(&mut self, view: &View<'_>, thread: usize, why: Arrival) -> usize {
        let near = match why {
            Arrival::Start => None,
            Arrival::Wake | Arrival::Moved => self.wake(view, thread),
        };
        // A mask always names a PU of the machine, so the search over all domains finds one.
        near.or_else(|| self.start(view, thread)).unwrap_or(0)
    }

    fn pull(&mut self, view: &View<'_>, pu: usize) -> Option<usize> {
        let around = view.shape.domains.iter();
        let mut around = around.filter(|d| d.groups.iter().any(|g| g.contains(&pu)));
        around.find_map(|domain| {
            let pus = domain.groups.iter().flatten().copied();
            let holders = pus.filter(|&other| view.queued_for(other, pu).is_some());
            let load = |other| core::cmp::Reverse(view.load(other));
            let source = least(&mut self.draw, holders, load)?;
            view.queued_for(source, pu)
        })
    }

    fn balance(&mut self, view: &View<'_>, tick: u64) -> Option<(usize, usize)> {
        let domains = view.shape.domains.iter();
        let mut due = domains.filter(|d| tick.is_multiple_of(d.weight as u64));
        due.find_map(|domain| self.even_out(view, domain))
    }
}
