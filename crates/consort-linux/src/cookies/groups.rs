//! Distribution of cookies among threads, with no write that changes nothing.

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
    /// Threads that had a foreign cookie when they were last read.
    foreign: BTreeSet<ThreadId>,
}

/// Cookies of threads, as they were found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FoundCookies {
    /// Cookies of threads that may be given one: one of Consort's, or 0 for none.
    pub(crate) own: BTreeMap<ThreadId, u64>,
    /// Threads that have a foreign cookie now and did not have it at the last reading.
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

    /// Reads the cookies of these threads. Threads that are gone, or may not be read, are left
    /// out, and so are threads with a foreign cookie.
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
            Ok(()) if cookie != 0 => {
                if let Err(errno) = self.kernel.clear(thread.tid) {
                    let tid = thread.tid;
                    tracing::warn!(tid, %errno, "a reused tid keeps a cookie that was not meant for it");
                }
            }
            Err(errno) if is_there => {
                let what = if cookie == 0 { "keeps its" } else { "has no" };
                let text = format!("thread {thread} {what} core-scheduling cookie: {errno}");
                round.failures.push(text);
            }
            _ => {}
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
mod tests {
    use super::*;
    use nix::errno::Errno;
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Cookies of threads by tid, and the number of writes.
    #[derive(Debug, Default)]
    struct World {
        cookies: BTreeMap<u32, u64>,
        writes: u64,
        made: u64,
    }

    #[derive(Clone, Debug, Default)]
    struct FakeKernel(Rc<RefCell<World>>);

    #[derive(Debug)]
    struct FakeKeeper(u64, Rc<RefCell<World>>);

    impl World {
        fn write(&mut self, tid: u32, cookie: u64) -> Result<(), Errno> {
            let has = self.cookies.get_mut(&tid).ok_or(Errno::ESRCH)?;
            *has = cookie;
            self.writes += 1;
            Ok(())
        }
    }

    impl CoreScheduling for FakeKernel {
        type Keeper = FakeKeeper;

        fn cookie(&self, tid: u32) -> Result<u64, Errno> {
            let world = self.0.borrow();
            world.cookies.get(&tid).copied().ok_or(Errno::ESRCH)
        }

        fn clear(&self, tid: u32) -> Result<(), Errno> {
            self.0.borrow_mut().write(tid, 0)
        }

        fn create(&self) -> Result<FakeKeeper, Errno> {
            let mut world = self.0.borrow_mut();
            world.made += 1;
            Ok(FakeKeeper(world.made, Rc::clone(&self.0)))
        }
    }

    impl CookieKeeper for FakeKeeper {
        fn id(&self) -> u64 {
            self.0
        }

        fn share(&self, tid: u32) -> Result<(), Errno> {
            self.1.borrow_mut().write(tid, self.0)
        }
    }

    /// An owner with a journal, on the made-up kernel.
    struct Books {
        noted: Vec<u64>,
        guarded: bool,
        full: bool,
        /// True if no thread can be looked up.
        blind: bool,
        /// A thread whose number goes to another between check and write.
        fleeting: RefCell<Option<ThreadId>>,
    }

    impl CookieJournal for Books {
        fn is_there(&self, thread: ThreadId) -> Option<bool> {
            if self.blind {
                return None;
            }
            // There at the first request, gone from then on.
            let mut fleeting = self.fleeting.borrow_mut();
            if *fleeting == Some(thread) {
                *fleeting = Some(ThreadId {
                    start_ticks: 1,
                    ..thread
                });
                return Some(true);
            }
            Some(fleeting.is_none_or(|gone| gone.tid != thread.tid))
        }

        fn is_guarded(&mut self) -> bool {
            self.guarded
        }

        fn journal_cookie(&mut self, cookie: u64) -> Result<(), String> {
            if self.full {
                return Err("the disk is full".to_owned());
            }
            self.noted.push(cookie);
            Ok(())
        }
    }

    fn thread(tid: u32) -> ThreadId {
        ThreadId {
            pid: 1,
            tid,
            start_ticks: 0,
        }
    }

    fn group(tids: &[u32]) -> Vec<ThreadId> {
        tids.iter().copied().map(thread).collect()
    }

    /// Threads 1 to 8, none of which has a cookie.
    struct Scene {
        kernel: FakeKernel,
        cookies: Cookies<FakeKernel>,
        books: Books,
    }

    impl Scene {
        fn new() -> Self {
            let kernel = FakeKernel::default();
            kernel.0.borrow_mut().cookies = (1..=8).map(|tid| (tid, 0)).collect();
            Self {
                cookies: Cookies::new(kernel.clone()),
                kernel,
                books: Books {
                    noted: Vec::new(),
                    guarded: true,
                    full: false,
                    blind: false,
                    fleeting: RefCell::new(None),
                },
            }
        }

        /// One quantum with these groups.
        fn turn(&mut self, groups: &[&[u32]]) -> CookieReport {
            let looked = self.cookies.read_cookies((1..=8).map(thread));
            let groups: Vec<_> = groups.iter().map(|tids| group(tids)).collect();
            self.cookies.share(&looked.own, &groups, &mut self.books)
        }

        fn of(&self, tid: u32) -> u64 {
            self.kernel.cookie(tid).unwrap()
        }

        fn set(&self, tid: u32, cookie: u64) {
            self.kernel.0.borrow_mut().cookies.insert(tid, cookie);
        }

        fn writes(&self) -> u64 {
            self.kernel.0.borrow().writes
        }
    }

    #[test]
    fn unreadable_threads_lose_their_cookies() {
        let mut scene = Scene::new();
        scene.turn(&[&[1, 2]]);
        assert_ne!(scene.of(1), 0);
        scene.books.blind = true;
        let round = scene.turn(&[&[3, 4]]);
        assert!(round.failures.is_empty(), "{:?}", round.failures);
        assert_eq!([1, 2, 3, 4].map(|tid| scene.of(tid)), [0; 4]);
    }

    #[test]
    fn groups_share_cookies_and_others_have_none() {
        let mut scene = Scene::new();
        let round = scene.turn(&[&[1, 2], &[3, 4]]);
        assert_eq!((round.groups, round.writes), (2, 4));
        assert_eq!(scene.of(1), scene.of(2));
        assert_eq!(scene.of(3), scene.of(4));
        assert_ne!(scene.of(1), scene.of(3));
        assert_eq!([5, 6, 7, 8].map(|tid| scene.of(tid)), [0; 4]);
        assert!(scene.books.noted.contains(&scene.of(1)));
    }

    #[test]
    fn only_changes_are_written() {
        let mut scene = Scene::new();
        scene.turn(&[&[1, 2], &[3, 4]]);
        let before = scene.writes();
        // The same groups on each other's cores.
        assert_eq!(scene.turn(&[&[3, 4], &[1, 2]]).writes, 0);
        // One comes for another.
        assert_eq!(scene.turn(&[&[3, 5], &[1, 2]]).writes, 2);
        assert_eq!(scene.of(4), 0);
        assert_eq!(scene.writes() - before, 2);
        assert_eq!(scene.books.noted.len(), 2, "no new cookie");
    }

    #[test]
    fn a_cookie_that_is_free_is_used_again() {
        let mut scene = Scene::new();
        scene.turn(&[&[1, 2]]);
        assert_eq!(scene.turn(&[]).writes, 2);
        scene.turn(&[&[5, 6]]);
        assert_eq!(scene.books.noted, [1]);
    }

    #[test]
    fn what_is_inherited_is_taken_away() {
        let mut scene = Scene::new();
        scene.turn(&[&[1, 2]]);
        scene.set(7, scene.of(1));
        assert_eq!(scene.turn(&[&[1, 2]]).writes, 1);
        assert_eq!(scene.of(7), 0);
        scene.set(8, scene.of(1));
        let round = scene
            .cookies
            .clear(group(&[7, 8]).into_iter(), &scene.books);
        assert_eq!((round.writes, scene.of(8)), (1, 0));
    }

    #[test]
    fn dropped_cookies_are_cleared_and_not_reused() {
        let mut scene = Scene::new();
        scene.turn(&[&[1, 2]]);
        let inherited = scene.of(1);
        scene.cookies.end_keepers();
        assert_eq!(scene.turn(&[]).writes, 2);
        scene.set(7, inherited);
        assert_eq!(scene.turn(&[]).writes, 1);
        scene.turn(&[&[1, 2]]);
        assert_ne!(scene.of(1), inherited);
    }

    #[test]
    fn foreign_cookie_is_untouched_and_reported_once() {
        let mut scene = Scene::new();
        scene.set(2, 99);
        let looked = scene.cookies.read_cookies((1..=8).map(thread));
        assert_eq!(looked.foreign, [thread(2)]);
        assert!(!looked.own.contains_key(&thread(2)));
        assert_eq!(
            scene.cookies.read_cookies([thread(2)].into_iter()).foreign,
            []
        );
        scene.turn(&[&[1, 3]]);
        scene.cookies.clear([thread(2)].into_iter(), &scene.books);
        assert_eq!(scene.of(2), 99);
    }

    #[test]
    fn no_cookie_without_journal() {
        let mut scene = Scene::new();
        scene.books.guarded = false;
        let round = scene.turn(&[&[1, 2]]);
        assert!(round.failures[0].contains("no guardian"), "{round:?}");
        scene.books = Books {
            guarded: true,
            full: true,
            ..scene.books
        };
        let round = scene.turn(&[&[1, 2]]);
        assert!(round.failures[0].contains("the disk is full"), "{round:?}");
        assert_eq!(scene.writes(), 0);
    }

    #[test]
    fn stranger_with_same_number_gets_no_cookie() {
        let mut scene = Scene::new();
        scene.books.fleeting = RefCell::new(Some(thread(1)));
        let round = scene.turn(&[&[1, 2]]);
        assert_eq!((round.writes, scene.of(1)), (1, 0));
        assert_ne!(scene.of(2), 0);
    }

    /// Threads 1 to 8 dealt to four groups; 0 is none.
    fn deals() -> impl Strategy<Value = Vec<[usize; 8]>> {
        prop::collection::vec(prop::array::uniform8(0usize..5), 1..6)
    }

    proptest! {
        #[test]
        fn after_any_changes_exactly_the_groups_have_cookies(deals in deals()) {
            let mut scene = Scene::new();
            for deal in &deals {
                let members = |g: usize| (1u32..=8).zip(deal).filter(move |(_, at)| **at == g);
                let groups: Vec<Vec<u32>> = (1..5).map(|g| members(g).map(|(t, _)| t).collect()).collect();
                let groups: Vec<&[u32]> = groups.iter().map(Vec::as_slice).filter(|g| g.len() > 1).collect();
                let round = scene.turn(&groups);
                prop_assert_eq!(round.groups, groups.len());
                prop_assert_eq!(scene.turn(&groups).writes, 0);
                for a in 1..=8 {
                    let at = groups.iter().position(|g| g.contains(&a));
                    prop_assert_eq!(scene.of(a) != 0, at.is_some());
                    for b in 1..=8 {
                        let together = at.is_some_and(|at| groups[at].contains(&b));
                        prop_assert_eq!(together, scene.of(a) != 0 && scene.of(a) == scene.of(b));
                    }
                }
            }
            prop_assert!(scene.books.noted.len() <= 4);
        }
    }
}
