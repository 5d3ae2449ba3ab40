//! Locks, from the atomic updates of their words and from futex calls.
//!
//! A lock is taken by a locked compare-and-exchange of a word, which the same thread later releases
//! by another atomic update or a plain store. A thread that fails to take it waits on the word and
//! tries again; the code of that retry is then known as code that tries.

use std::collections::{HashMap, HashSet};

use super::futex::Futex;
use crate::recorder::{AtomicUpdate, SystemCall};

/// Words that one thread is assumed to hold at a time; with more, the oldest is forgotten.
const MOST_HELD: usize = 8;

/// Locks that at least two threads took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Locks {
    /// Number of acquisitions in the counted part.
    pub taken: u64,
    /// Mean instructions from acquisition to release.
    pub hold_instr: f64,
    /// Number of lock words.
    pub words: u64,
    /// Number of locks that, taken equally often, would meet as often: 1/Σp².
    pub effective: f64,
    /// Times that threads waited on these words, in the whole run.
    pub waits: u64,
    /// Acquisitions of locks that only one thread took.
    pub taken_by_one: u64,
}

#[derive(Debug, Clone, Copy)]
struct LockHold {
    word: u64,
    since: u64,
    /// True if the thread waited, so that its next update is another try.
    waited: bool,
}

/// A release, unless the thread waits on the word next: then it was a failed try.
#[derive(Debug, Clone, Copy)]
struct LockRelease {
    held: LockHold,
    code: u64,
    hold: u64,
    counted: bool,
}

#[derive(Debug, Clone, Default)]
struct ThreadLocks {
    held: Vec<LockHold>,
    given: Option<LockRelease>,
}

#[derive(Debug, Clone, Copy, Default)]
struct LockWord {
    takers: u64,
    taken: u64,
    held_instr: u64,
    waits: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct LockMeter {
    takers: Vec<ThreadLocks>,
    tries: HashSet<u64>,
    words: HashMap<u64, LockWord>,
}

impl LockMeter {
    fn thread_locks(&mut self, thread: usize) -> &mut ThreadLocks {
        if self.takers.len() <= thread {
            self.takers.resize_with(thread + 1, ThreadLocks::default);
        }
        &mut self.takers[thread]
    }

    /// Forgets the locks of a thread, because they are unknown after a part that is not recorded.
    pub(crate) fn forget_thread(&mut self, thread: usize) {
        *self.thread_locks(thread) = ThreadLocks::default();
    }

    pub(crate) fn holds_lock(&self, thread: usize) -> bool {
        self.takers.get(thread).is_some_and(|t| !t.held.is_empty())
    }

    /// Adds an atomic update that is the thread's instruction number `at`.
    pub(crate) fn record_atomic(
        &mut self,
        thread: usize,
        atomic: AtomicUpdate,
        at: u64,
        counts: bool,
    ) {
        let is_try = atomic.compares || self.tries.contains(&atomic.code);
        let taker = self.thread_locks(thread);
        let found = taker.held.iter_mut().find(|held| held.word == atomic.word);
        match found {
            Some(held) if is_try || held.waited => {
                held.since = at;
                if std::mem::take(&mut held.waited) {
                    self.tries.insert(atomic.code);
                }
            }
            Some(_) => self.release_lock(thread, atomic, at, counts),
            None if atomic.compares => self.begin_hold(thread, atomic.word, at),
            None => {}
        }
    }

    /// Adds a plain store.
    pub(crate) fn record_store(&mut self, thread: usize, word: u64, at: u64, counts: bool) {
        let taker = self.thread_locks(thread);
        if taker.held.iter().any(|held| held.word == word) {
            let (code, compares) = (0, false);
            let atomic = AtomicUpdate {
                word,
                code,
                compares,
            };
            self.release_lock(thread, atomic, at, counts);
        }
    }

    fn begin_hold(&mut self, thread: usize, word: u64, since: u64) {
        let taker = self.thread_locks(thread);
        if taker.held.len() == MOST_HELD {
            taker.held.remove(0);
        }
        let waited = false;
        taker.held.push(LockHold {
            word,
            since,
            waited,
        });
    }

    fn release_lock(&mut self, thread: usize, atomic: AtomicUpdate, at: u64, counts: bool) {
        let taker = self.thread_locks(thread);
        let place = taker.held.iter().position(|held| held.word == atomic.word);
        let Some(held) = place.map(|place| taker.held.remove(place)) else {
            return;
        };
        let hold = at - held.since;
        taker.given = Some(LockRelease {
            held,
            code: atomic.code,
            hold,
            counted: counts,
        });
        let word = self.words.entry(atomic.word).or_default();
        if counts {
            word.takers |= 1 << (thread % 64);
            word.taken += 1;
            word.held_instr += hold;
        }
    }

    /// Adds a call: a thread that waits on a word does not hold it.
    pub(crate) fn record_call(&mut self, thread: usize, call: &SystemCall) {
        let Some(Futex::Wait(word, _)) = Futex::from_call(call) else {
            return;
        };
        self.words.entry(word).or_default().waits += 1;
        let taker = self.thread_locks(thread);
        let given = taker.given.take().filter(|given| given.held.word == word);
        if let Some(held) = taker.held.iter_mut().find(|held| held.word == word) {
            held.waited = true;
        } else if let Some(given) = given {
            self.undo_release(thread, &given);
        }
    }

    /// Undoes a release that was a failed try.
    fn undo_release(&mut self, thread: usize, given: &LockRelease) {
        self.tries.insert(given.code);
        let word = self.words.entry(given.held.word).or_default();
        if given.counted {
            word.taken -= 1;
            word.held_instr -= given.hold;
        }
        let waited = true;
        self.thread_locks(thread).held.push(LockHold {
            waited,
            ..given.held
        });
    }

    /// The locks; `None` if none was taken.
    pub(crate) fn locks(&self) -> Option<Locks> {
        let taken = || self.words.values().filter(|word| word.taken > 0);
        let common = || taken().filter(|word| word.takers.count_ones() > 1);
        let sum = |of: fn(&LockWord) -> u64| common().map(of).sum::<u64>();
        let all = sum(|word| word.taken);
        let of_all = |word: &LockWord| word.taken as f64 / all.max(1) as f64;
        let meeting: f64 = common().map(|word| of_all(word).powi(2)).sum();
        taken().next().map(|_| Locks {
            taken: all,
            hold_instr: sum(|word| word.held_instr) as f64 / all.max(1) as f64,
            words: common().count() as u64,
            effective: if all > 0 { 1.0 / meeting } else { 0.0 },
            waits: sum(|word| word.waits),
            taken_by_one: taken().map(|word| word.taken).sum::<u64>() - all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::futex::call;
    use super::*;

    const WORD: u64 = 0x8000;
    const TAKE: (u64, bool) = (0x10, true);
    const TRY: (u64, bool) = (0x20, false);
    const GIVE: (u64, bool) = (0x30, false);

    fn does(meter: &mut LockMeter, thread: usize, code: (u64, bool), at: u64) {
        let atomic = AtomicUpdate {
            word: WORD,
            code: code.0,
            compares: code.1,
        };
        meter.record_atomic(thread, atomic, at, true);
    }

    fn waits(meter: &mut LockMeter, thread: usize) {
        meter.record_call(thread, &call(128, WORD, 2));
    }

    #[test]
    fn lock_of_two_threads_has_count_and_hold() {
        let mut meter = LockMeter::default();
        for at in 0..10 {
            does(&mut meter, at % 2, TAKE, at as u64 * 1000);
            does(&mut meter, at % 2, GIVE, at as u64 * 1000 + 100);
        }
        let locks = meter.locks().unwrap();
        assert_eq!((locks.taken, locks.words, locks.waits), (10, 1, 0));
        assert_eq!((locks.hold_instr, locks.effective), (100.0, 1.0));
    }

    #[test]
    fn try_after_waiting_takes_the_lock() {
        let mut meter = LockMeter::default();
        does(&mut meter, 1, TAKE, 0);
        does(&mut meter, 1, GIVE, 100);
        // Fails twice, waits, is back and has it; the first try looks like giving back.
        for begin in [1000, 2000] {
            does(&mut meter, 0, TAKE, begin);
            does(&mut meter, 0, TRY, begin + 10);
            waits(&mut meter, 0);
            does(&mut meter, 0, TRY, begin + 20);
            does(&mut meter, 0, GIVE, begin + 120);
        }
        let locks = meter.locks().unwrap();
        assert_eq!((locks.taken, locks.waits), (3, 2));
        assert_eq!(locks.hold_instr, 100.0);
    }

    #[test]
    fn updates_that_take_nothing_are_no_locks() {
        let mut meter = LockMeter::default();
        for thread in 0..2 {
            // A counter, and a loop that compares until it has it.
            does(&mut meter, thread, GIVE, 0);
            does(&mut meter, thread, TAKE, 1);
            does(&mut meter, thread, TAKE, 2);
            meter.forget_thread(thread);
        }
        assert_eq!(meter.locks(), None);
    }

    #[test]
    fn lock_of_one_thread_is_counted_separately() {
        let mut meter = LockMeter::default();
        does(&mut meter, 0, TAKE, 0);
        assert!(meter.holds_lock(0));
        meter.record_store(0, WORD, 10, true);
        assert!(!meter.holds_lock(0));
        let locks = meter.locks().unwrap();
        assert_eq!((locks.taken, locks.taken_by_one), (0, 1));
    }
}
