//! Cores that are kept to those whom the plan seats on them.

use super::{CookieCounts, Live};
use crate::cookies::{Cookies, RealKernel, Round};
use crate::enforce::neighbours;
use crate::owners;
use consort_core::{Placement, Plan, ThreadId};
use std::collections::BTreeMap;

/// What is dangerous from the first cookie on.
const DANGER: &str = "cores have core-scheduling cookies: start no sched_ext scheduler until this run is \
                      over, the two together hang hosts with SMT (sched-ext/scx#3715)";

/// The cookies of a run that wants them.
#[derive(Default)]
pub(super) struct CoreCookies {
    /// None where they are not wanted.
    cookies: Option<Cookies<RealKernel>>,
    /// Whether a sched_ext scheduler was there: nobody is given any more.
    is_overruled: bool,
    /// None where they are not wanted.
    pub(super) counts: Option<CookieCounts>,
}

impl CoreCookies {
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            cookies: wanted.then(|| Cookies::new(RealKernel)),
            is_overruled: false,
            counts: wanted.then(CookieCounts::default),
        }
    }

    /// Gives up for good if a sched_ext scheduler of this name has come; what is said of that, once.
    fn overruled(&mut self, scheduler: Option<String>) -> Option<String> {
        let name = scheduler.filter(|_| !self.is_overruled)?;
        self.is_overruled = true;
        self.cookies.iter_mut().for_each(Cookies::keep_none);
        Some(format!(
            "all core-scheduling cookies are taken away, for the rest of the run: sched_ext \
             scheduler {name} is enabled, and the two together hang hosts with SMT \
             (sched-ext/scx#3715)"
        ))
    }

    /// Counts what was done; what went wrong with it.
    fn count(&mut self, round: Round) -> Vec<String> {
        if let Some(counts) = &mut self.counts {
            counts.writes += round.writes;
            counts.cores = counts.cores.max(round.groups);
        }
        round.failures
    }
}

impl Live {
    /// Gives those whom a plan seats on one core a cookie, and takes away what others have; what is
    /// to be said of it.
    pub(super) fn share_cores(&mut self, plan: &Plan) -> Vec<String> {
        let Some(cookies) = &mut self.cookies.cookies else {
            return Vec::new();
        };
        let looked = cookies.look(self.threads.keys().copied());
        let overruled = self.cookies.overruled(owners::sched_ext(&self.root));
        let groups = match self.cookies.is_overruled {
            true => Vec::new(),
            false => self.crowds(plan, &looked.own),
        };
        let round = self.share(&looked.own, &groups);
        let foreign = looked.foreign.iter().map(|id| self.foreign(*id));
        let dangerous = self.is_dangerous_from(&round).then(|| DANGER.to_owned());
        let said: Vec<String> = foreign.chain(overruled).chain(dangerous).collect();
        said.into_iter().chain(self.cookies.count(round)).collect()
    }

    fn share(&mut self, now: &BTreeMap<ThreadId, u64>, groups: &[Vec<ThreadId>]) -> Round {
        let cookies = self.cookies.cookies.as_mut();
        cookies.map_or_else(Round::default, |cookies| {
            cookies.share(now, groups, &mut self.enactor)
        })
    }

    /// Whether these are the first cookies, and a scheduler could be started that they must not meet.
    fn is_dangerous_from(&self, round: &Round) -> bool {
        let had_none = self.cookies.counts.is_some_and(|counts| counts.cores == 0);
        had_none && round.groups > 0 && owners::may_get_sched_ext(&self.root)
    }

    /// Threads that run together on a core by this plan, of those that may have a cookie.
    fn crowds(&self, plan: &Plan, may: &BTreeMap<ThreadId, u64>) -> Vec<Vec<ThreadId>> {
        let runs = |id: &ThreadId| {
            let managed = self.threads.get(id).is_some_and(|thread| thread.managed);
            managed && may.contains_key(id) && !plan.paused.contains(&self.program_of(id.pid))
        };
        let placed = plan
            .placements
            .iter()
            .filter_map(|(id, place)| match place {
                Placement::Restricted(pus) => Some((*id, pus)),
                Placement::Unrestricted => None,
            });
        neighbours(&self.topology, placed.filter(|(id, _)| runs(id)))
    }

    /// Takes away what threads have inherited, or must not keep.
    pub(super) fn take_cookies(&mut self, threads: &[ThreadId]) {
        let Some(cookies) = &self.cookies.cookies else {
            return;
        };
        let round = cookies.clear(threads.iter().copied(), &self.enactor);
        let said = self.cookies.count(round);
        self.warnings.extend(said);
    }

    fn foreign(&self, id: ThreadId) -> String {
        let name = self.threads.get(&id).map_or("?", |thread| &thread.name);
        format!("thread {id} ({name}) has a core-scheduling cookie of somebody else's and keeps it")
    }
}
