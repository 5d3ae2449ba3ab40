//! Distribution of cookies among threads, with no writes but those that change something.

use super::core_scheduling::{CookieKeeper, CoreScheduling};
use consort_core::ThreadId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The part of Consort that vouches for changes of threads: it checks their identity, has a
/// guardian, and keeps the journal.
pub(crate) trait CookieJournal {
    /// Returns true if a thread is still there under its number; `None` if that is not known now.
    fn is_there(&self, thread: ThreadId) -> Option<bool>;

    /// Returns true if a guardian would take cookies away should Consort be killed.
    fn is_guarded(&mut self) -> bool;

    /// Journals the number of a cookie before threads are given it; an error has the reason for
    /// which it cannot be journalled.
    fn journal_cookie(&mut self, cookie: u64) -> Result<(), String>;
}

/// Cookies that Consort has made.
#[derive(Debug)]
pub(crate) struct Cookies<K: CoreScheduling> {
    kernel: K,
    keepers: BTreeMap<u64, K::Keeper>,
    /// Numbers of all cookies that were ever made.
    made: BTreeSet<u64>,
    /// Threads that had somebody else's cookie when they were last looked at.
    foreign: BTreeSet<ThreadId>,
}

/// Cookies of threads, as they were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundCookies {
    /// Cookies of threads that may be given one: one of Consort's, or 0 for none.
    pub(crate) own: BTreeMap<ThreadId, u64>,
    /// Threads that have somebody else's cookie now and did not have it at the last look.
    pub(crate) foreign: Vec<ThreadId>,
}

/// Outcome of giving cookies to groups, or of taking them away.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CookieReport {
    /// Number of groups that have a cookie.
    pub(crate) groups: usize,
    /// Number of threads that were given a cookie, or had theirs taken away.
    pub(crate) writes: u64,
    /// Reasons for which groups have no cookie, or threads not the cookie that they were to have.
    pub(crate) failures: Vec<String>,
}

impl<K: CoreScheduling> Cookies<K> {
    pub(crate) fn new(kernel: K) -> Self {
        Self {
            kernel,
            keepers: BTreeMap::new(),
            made: BTreeSet::new(),
            foreign: BTreeSet::new(),
        }
    }

    /// Reads the cookies of these threads. Threads that are gone, or may not be asked, are left
    /// out, and so are those with somebody else's cookie.
    pub(crate) fn read_cookies(&mut self, threads: impl Iterator<Item = ThreadId>) -> FoundCookies {
        let mut looked = FoundCookies::default();
        let mut foreign = BTreeSet::new();
        for thread in threads {
            match self.kernel.cookie(thread.tid) {
                Ok(cookie) if self.is_own(cookie) => {
                    looked.own.insert(thread, cookie);
                }
                Ok(_) => {
                    foreign.insert(thread);
                }
                Err(_) => {}
            }
        }
        looked.foreign = foreign.difference(&self.foreign).copied().collect();
        self.foreign = foreign;
        looked
    }

    fn is_own(&self, cookie: u64) -> bool {
        cookie == 0 || self.made.contains(&cookie)
    }

    /// Ends all keepers: the kernel keeps a cookie only as long as some thread has it.
    pub(crate) fn end_keepers(&mut self) {
        self.keepers.clear();
    }

    /// Gives each group a cookie of its own, and takes Consort's away from all other threads. A
    /// group keeps the cookie that most of its threads have. `now` is the result of a look.
    pub(crate) fn share(
        &mut self,
        now: &BTreeMap<ThreadId, u64>,
        groups: &[Vec<ThreadId>],
        owner: &mut impl CookieJournal,
    ) -> CookieReport {
        let mut round = CookieReport::default();
        let wanted = self.choose_cookies(now, groups, owner, &mut round);
        let of = |thread| wanted.get(thread).copied().unwrap_or(0);
        let changes = now.iter().map(|(thread, &has)| (*thread, has, of(thread)));
        let (given, taken): (Vec<_>, Vec<_>) = changes
            .filter(|(_, has, wants)| has != wants)
            .partition(|(_, _, wants)| *wants != 0);
        for (thread, _, wants) in taken.into_iter().chain(given) {
            self.write(thread, wants, owner, &mut round);
        }
        round
    }

    /// Takes Consort's cookies away from these threads.
    pub(crate) fn clear(
        &self,
        threads: impl Iterator<Item = ThreadId>,
        owner: &impl CookieJournal,
    ) -> CookieReport {
        let mut round = CookieReport::default();
        for thread in threads {
            let cookie = self.kernel.cookie(thread.tid);
            if cookie.is_ok_and(|cookie| cookie != 0 && self.is_own(cookie)) {
                self.write(thread, 0, owner, &mut round);
            }
        }
        round
    }

    /// The cookie for each thread of a group.
    fn choose_cookies(
        &mut self,
        now: &BTreeMap<ThreadId, u64>,
        groups: &[Vec<ThreadId>],
        owner: &mut impl CookieJournal,
        round: &mut CookieReport,
    ) -> BTreeMap<ThreadId, u64> {
        if groups.is_empty() {
            return BTreeMap::new();
        }
        if !owner.is_guarded() {
            let text = "no core has a cookie: there is no guardian to take it away";
            round.failures.push(text.to_owned());
            return BTreeMap::new();
        }
        let mut kept = match_kept_cookies(now, groups, |cookie| self.keepers.contains_key(&cookie));
        let mut wanted = BTreeMap::new();
        for (index, group) in groups.iter().enumerate() {
            let had = kept.get(&index).copied();
            let cookie = had.map_or_else(|| self.find_or_create_cookie(kept.values(), owner), Ok);
            match cookie {
                Ok(cookie) => {
                    kept.insert(index, cookie);
                    wanted.extend(group.iter().map(|&thread| (thread, cookie)));
                    round.groups += 1;
                }
                Err(why) => round.failures.push(why),
            }
        }
        wanted
    }

    /// A cookie that no group has; a new one is made and journalled if need be.
    fn find_or_create_cookie<'a>(
        &mut self,
        taken: impl Iterator<Item = &'a u64>,
        owner: &mut impl CookieJournal,
    ) -> Result<u64, String> {
        let taken: BTreeSet<u64> = taken.copied().collect();
        if let Some(idle) = self.keepers.keys().find(|id| !taken.contains(id)) {
            return Ok(*idle);
        }
        let keeper = self.kernel.create();
        let keeper = keeper.map_err(|errno| format!("a core has no cookie: {errno}"))?;
        let id = keeper.id();
        let noted = owner.journal_cookie(id);
        noted.map_err(|why| format!("a core has no cookie: it could not be journalled: {why}"))?;
        self.made.insert(id);
        self.keepers.insert(id, keeper);
        Ok(id)
    }

    /// Gives a thread a cookie, or takes its own away. If the tid has gone to another thread
    /// meanwhile, that one was born a moment ago, and its cookie is taken away again.
    fn write(
        &self,
        thread: ThreadId,
        cookie: u64,
        owner: &impl CookieJournal,
        round: &mut CookieReport,
    ) {
        // A cookie of Consort's is taken away on a guess, and none is given on one.
        match owner.is_there(thread) {
            Some(false) => return,
            None if cookie != 0 => return,
            _ => {}
        }
        let written = match self.keepers.get(&cookie) {
            Some(keeper) => keeper.share(thread.tid),
            None => self.kernel.clear(thread.tid),
        };
        let is_there = owner.is_there(thread).unwrap_or(cookie == 0);
        match written {
            Ok(()) if is_there => round.writes += 1,
            Ok(()) if cookie != 0 => self.clear_stranger(thread.tid),
            Err(errno) if is_there => {
                let what = if cookie == 0 { "keeps its" } else { "has no" };
                let text = format!("thread {thread} {what} core-scheduling cookie: {errno}");
                round.failures.push(text);
            }
            _ => {}
        }
    }

    fn clear_stranger(&self, tid: u32) {
        if let Err(errno) = self.kernel.clear(tid) {
            tracing::warn!(tid, %errno, "a reused tid keeps a cookie that was not meant for it");
        }
    }
}

/// For each group, by its index, the cookie that most of its threads have; only cookies that can be
/// given to others, and each for one group only.
fn match_kept_cookies(
    now: &BTreeMap<ThreadId, u64>,
    groups: &[Vec<ThreadId>],
    can_be_given: impl Fn(u64) -> bool,
) -> BTreeMap<usize, u64> {
    let mut claims: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    for (index, group) in groups.iter().enumerate() {
        let have = group.iter().filter_map(|thread| now.get(thread));
        for &cookie in have.filter(|cookie| can_be_given(**cookie)) {
            *claims.entry((index, cookie)).or_default() += 1;
        }
    }
    let mut claims: Vec<_> = claims.into_iter().collect();
    claims.sort_by_key(|&(claim, members)| (Reverse(members), claim));
    let (mut kept, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for ((index, cookie), _) in claims {
        if !kept.contains_key(&index) && taken.insert(cookie) {
            kept.insert(index, cookie);
        }
    }
    kept
}

#[cfg(test)]
mod tests;
