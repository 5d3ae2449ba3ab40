//! Giving cookies to groups, on a made-up kernel.

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
        // There when it is asked for the first time, gone from then on.
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
fn cookies_are_taken_from_threads_that_cannot_be_looked_up() {
    let mut scene = Scene::new();
    scene.turn(&[&[1, 2]]);
    assert_ne!(scene.of(1), 0);
    scene.books.blind = true;
    let round = scene.turn(&[&[3, 4]]);
    assert!(round.failures.is_empty(), "{:?}", round.failures);
    assert_eq!([1, 2, 3, 4].map(|tid| scene.of(tid)), [0; 4]);
}

#[test]
fn each_group_has_a_cookie_in_common_and_others_have_none() {
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
fn cookies_that_are_kept_no_more_are_taken_away_and_not_used_again() {
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
fn somebody_elses_cookie_is_never_touched_and_told_once() {
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
fn nothing_is_given_that_nobody_would_take_away() {
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
fn a_stranger_under_the_same_number_is_left_without() {
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
