//! Core-scheduling cookies of a run: only threads that the plan has together on a core run there
//! together.

use crate::cookies::{CookieReport, Cookies, HostCoreScheduling};
use crate::enact::Enactor;
use crate::enforce::neighbours;
use crate::live::CookieCounts;
use crate::live::live_topology::LiveTopology;
use crate::live::thread_table::ThreadTable;
use crate::owners;
use consort_core::{Placement, Plan, ThreadId};
use std::collections::BTreeMap;

/// Warning about a danger that exists from the first cookie on.
const DANGER: &str = "cores have core-scheduling cookies: start no sched_ext scheduler until this run is \
                      over, the two together hang hosts with SMT (sched-ext/scx#3715)";

/// The cookies of a run, if it wants them.
#[derive(Default)]
pub(super) struct CoreCookies {
    /// Cookies that were made; none where they are not wanted.
    cookies: Option<Cookies<HostCoreScheduling>>,
    /// True once a sched_ext scheduler was there: from then on no thread is given a cookie.
    is_overruled: bool,
    /// Counts for the report; none where cookies are not wanted.
    counts: Option<CookieCounts>,
}

impl CoreCookies {
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            cookies: wanted.then(|| Cookies::new(HostCoreScheduling)),
            is_overruled: false,
            counts: wanted.then(CookieCounts::default),
        }
    }

    /// Gives up for good if a sched_ext scheduler of this name has come; returns the warning about
    /// that, once.
    fn yield_to_scheduler(&mut self, scheduler: Option<String>) -> Option<String> {
        let name = scheduler.filter(|_| !self.is_overruled)?;
        self.is_overruled = true;
        self.cookies.iter_mut().for_each(Cookies::end_keepers);
        Some(format!(
            "all core-scheduling cookies are taken away, for the rest of the run: sched_ext \
             scheduler {name} is enabled, and the two together hang hosts with SMT \
             (sched-ext/scx#3715)"
        ))
    }

    /// Adds a round to the counts; returns its failures.
    fn count(&mut self, round: CookieReport) -> Vec<String> {
        if let Some(counts) = &mut self.counts {
            counts.writes += round.writes;
            counts.cores = counts.cores.max(round.groups);
        }
        round.failures
    }

    /// Counts for the report; none where cookies are not wanted.
    pub(super) fn counts(&self) -> Option<CookieCounts> {
        self.counts
    }

    /// Gives threads that a plan has together on a core a cookie in common, and takes all others'
    /// away. Returns warnings for the user.
    pub(super) fn share_cores(
        &mut self,
        plan: &Plan,
        site: &LiveTopology,
        table: &ThreadTable,
        enactor: &mut Enactor,
    ) -> Vec<String> {
        let Some(cookies) = &mut self.cookies else {
            return Vec::new();
        };
        let looked = cookies.read_cookies(table.ids());
        let overruled = self.yield_to_scheduler(owners::sched_ext(site.root()));
        let groups = match self.is_overruled {
            true => Vec::new(),
            false => core_groups(plan, &looked.own, site, table),
        };
        let cookies = self.cookies.as_mut();
        let round = cookies.map_or_else(CookieReport::default, |cookies| {
            cookies.share(&looked.own, &groups, enactor)
        });
        let foreign = looked
            .foreign
            .iter()
            .map(|id| foreign_cookie_text(*id, table));
        let dangerous = self
            .is_newly_dangerous(&round, site)
            .then(|| DANGER.to_owned());
        let said: Vec<String> = foreign.chain(overruled).chain(dangerous).collect();
        said.into_iter().chain(self.count(round)).collect()
    }

    /// Returns true if these are the first cookies, on a host where a sched_ext scheduler could be
    /// started.
    fn is_newly_dangerous(&self, round: &CookieReport, site: &LiveTopology) -> bool {
        let had_none = self.counts.is_some_and(|counts| counts.cores == 0);
        had_none && round.groups > 0 && owners::may_get_sched_ext(site.root())
    }

    /// Takes away cookies that threads have inherited or must not keep; returns the failures.
    pub(super) fn take_away(&mut self, threads: &[ThreadId], enactor: &Enactor) -> Vec<String> {
        let Some(cookies) = &self.cookies else {
            return Vec::new();
        };
        let round = cookies.clear(threads.iter().copied(), enactor);
        self.count(round)
    }
}

/// Threads that run together on a core by this plan, of those that may have a cookie.
fn core_groups(
    plan: &Plan,
    may: &BTreeMap<ThreadId, u64>,
    site: &LiveTopology,
    table: &ThreadTable,
) -> Vec<Vec<ThreadId>> {
    let runs = |id: &ThreadId| {
        let is_paused = plan.paused.contains(&table.program_of(id.pid));
        table.may_place(*id) && may.contains_key(id) && !is_paused
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

fn foreign_cookie_text(id: ThreadId, table: &ThreadTable) -> String {
    let name = table.name(id);
    format!("thread {id} ({name}) has a core-scheduling cookie of somebody else's and keeps it")
}
