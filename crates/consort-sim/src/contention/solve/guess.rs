//! One belief of the iteration about a thread, and the way to the next.

use super::pace::GuessChange;

/// Activity of one thread, as estimated by the iteration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Guess {
    /// Time per instruction, s.
    pub(super) time_s: f64,
    /// Share of time in which it can dispatch.
    pub(super) active: f64,
    /// Share of time in which it waits for memory.
    pub(super) waits: f64,
    /// Share of time in which it dispatches instructions of a wrong path.
    pub(super) wrong_path: f64,
    /// Share of time in which it fetches and has nothing to dispatch yet: from a mispredicted
    /// branch's fetch to its dispatch, and from its result until what follows is dispatched.
    pub(super) refills: f64,
    /// Waiting for locks, s per instruction.
    pub(super) lock_s: f64,
    /// Size of its part of its branch predictor, KiB.
    pub(super) predictor_kib: f64,
    /// Share of its prefetches that find room in a miss queue, 0 to 1.
    pub(super) prefetching: f64,
}

impl Guess {
    /// Changes to the next guess: of the time, relative, and of shares of it.
    pub(super) fn change(&self, next: &Self) -> GuessChange {
        [
            (next.time_s - self.time_s) / next.time_s,
            next.active - self.active,
            next.waits - self.waits,
        ]
    }

    /// Goes a share of the way to the next guess, or farther.
    pub(super) fn approach(&mut self, next: &Self, share: f64) {
        let mix = |old: f64, new: f64| old + share * (new - old);
        let part = |old: f64, new: f64| mix(old, new).clamp(0.0, 1.0);
        *self = Self {
            time_s: mix(self.time_s, next.time_s),
            active: part(self.active, next.active),
            waits: part(self.waits, next.waits),
            wrong_path: part(self.wrong_path, next.wrong_path),
            refills: part(self.refills, next.refills),
            lock_s: mix(self.lock_s, next.lock_s).max(0.0),
            predictor_kib: mix(self.predictor_kib, next.predictor_kib).max(0.0),
            prefetching: part(self.prefetching, next.prefetching),
        };
    }
}
