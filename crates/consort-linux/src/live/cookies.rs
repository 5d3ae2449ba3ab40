//! Cores that are kept to those whom the plan seats on them.

use super::CookieCounts;
use super::roster::Roster;
use super::site::Site;
use crate::cookies::{Cookies, RealKernel, Round};
use crate::enact::Enactor;
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
    counts: Option<CookieCounts>,
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

    /// What there was of them; none where they are not wanted.
    pub(super) fn counts(&self) -> Option<CookieCounts> {
        self.counts
    }

    /// Gives those whom a plan seats on one core a cookie, and takes away what others have; what is
    /// to be said of it.
    pub(super) fn share_cores(
        &mut self,
        plan: &Plan,
        site: &Site,
        roster: &Roster,
        enactor: &mut Enactor,
    ) -> Vec<String> {
        let Some(cookies) = &mut self.cookies else {
            return Vec::new();
        };
        let looked = cookies.look(roster.ids());
        let overruled = self.overruled(owners::sched_ext(site.root()));
        let groups = match self.is_overruled {
            true => Vec::new(),
            false => crowds(plan, &looked.own, site, roster),
        };
        let cookies = self.cookies.as_mut();
        let round = cookies.map_or_else(Round::default, |cookies| {
            cookies.share(&looked.own, &groups, enactor)
        });
        let foreign = looked.foreign.iter().map(|id| foreign(*id, roster));
        let dangerous = self
            .is_dangerous_from(&round, site)
            .then(|| DANGER.to_owned());
        let said: Vec<String> = foreign.chain(overruled).chain(dangerous).collect();
        said.into_iter().chain(self.count(round)).collect()
    }

    /// Whether these are the first cookies, and a scheduler could be started that they must not meet.
    fn is_dangerous_from(&self, round: &Round, site: &Site) -> bool {
        let had_none = self.counts.is_some_and(|counts| counts.cores == 0);
        had_none && round.groups > 0 && owners::may_get_sched_ext(site.root())
    }

    /// Takes away what threads have inherited, or must not keep; what went wrong with it.
    pub(super) fn take_away(&mut self, threads: &[ThreadId], enactor: &Enactor) -> Vec<String> {
        let Some(cookies) = &self.cookies else {
            return Vec::new();
        };
        let round = cookies.clear(threads.iter().copied(), enactor);
        self.count(round)
    }
}

/// Threads that run together on a core by this plan, of those that may have a cookie.
fn crowds(
    plan: &Plan,
    may: &BTreeMap<ThreadId, u64>,
    site: &Site,
    roster: &Roster,
) -> Vec<Vec<ThreadId>> {
    let runs = |id: &ThreadId| {
        let is_paused = plan.paused.contains(&roster.program_of(id.pid));
        roster.may_place(*id) && may.contains_key(id) && !is_paused
    };
    let placed = plan
        .placements
        .iter()
        .filter_map(|(id, place)| match place {
            Placement::Restricted(pus) => Some((*id, pus)),
            Placement::Unrestricted => None,
        });
    neighbours(site.topology(), placed.filter(|(id, _)| runs(id)))
}

fn foreign(id: ThreadId, roster: &Roster) -> String {
    let name = roster.name(id);
    format!("thread {id} ({name}) has a core-scheduling cookie of somebody else's and keeps it")
}
