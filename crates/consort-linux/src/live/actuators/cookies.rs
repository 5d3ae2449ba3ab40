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

/// Warning about a danger that exists from the first cookie on.
const DANGER: &str = "cores have core-scheduling cookies: start no sched_ext scheduler until this run is \
                      over, the two together hang hosts with SMT (sched-ext/scx#3715)";

/// The cookies of a run, if it wants them.
#[derive(Default)]
pub(super) struct CoreCookies {
    /// Cookies that were made; `None` if they are not wanted.
    cookies: Option<Cookies<HostCoreScheduling>>,
    /// True once a sched_ext scheduler was there: from then on no thread is given a cookie.
    is_overruled: bool,
    /// Counts for the report; `None` if cookies are not wanted.
    pub(super) counts: Option<CookieCounts>,
}

impl CoreCookies {
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            cookies: wanted.then(|| Cookies::new(HostCoreScheduling)),
            is_overruled: false,
            counts: wanted.then(CookieCounts::default),
        }
    }

    /// Adds a round to the counts; returns its failures.
    fn count(&mut self, round: CookieReport) -> Vec<String> {
        if let Some(counts) = &mut self.counts {
            counts.writes += round.writes;
            counts.cores = counts.cores.max(round.groups);
        }
        round.failures
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
        // Given up for good, because the two together hang hosts with SMT.
        let scheduler = owners::sched_ext(site.root()).filter(|_| !self.is_overruled);
        let overruled = scheduler.map(|name| {
            self.is_overruled = true;
            cookies.end_keepers();
            format!(
                "all core-scheduling cookies are taken away, for the rest of the run: sched_ext \
                 scheduler {name} is enabled, and the two together hang hosts with SMT \
                 (sched-ext/scx#3715)"
            )
        });
        let groups = match self.is_overruled {
            true => Vec::new(),
            false => {
                let placed = plan
                    .placements
                    .iter()
                    .filter_map(|(id, place)| match place {
                        Placement::Restricted(pus) => Some((*id, pus)),
                        Placement::Unrestricted => None,
                    });
                let runs = |id: &ThreadId| {
                    let is_paused = plan.paused.contains(&table.program_of(id.pid));
                    table.may_place(*id) && looked.own.contains_key(id) && !is_paused
                };
                neighbours(site.topology(), placed.filter(|(id, _)| runs(id)))
            }
        };
        let round = cookies.share(&looked.own, &groups, enactor);
        let mut warnings = Vec::new();
        for id in &looked.foreign {
            let name = table.name(*id);
            warnings.push(format!(
                "thread {id} ({name}) has a core-scheduling cookie of another program and keeps it"
            ));
        }
        warnings.extend(overruled);
        let had_none = self.counts.is_some_and(|counts| counts.cores == 0);
        if had_none && round.groups > 0 && owners::may_get_sched_ext(site.root()) {
            warnings.push(DANGER.to_owned());
        }
        warnings.extend(self.count(round));
        warnings
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
