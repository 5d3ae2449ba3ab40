//! Locks whose acquisitions are events: taking them, waiting for them, handing them on.
//!
//! A thread that reaches an acquisition takes the lock if it is free and holds it for as many
//! instructions as were drawn; who finds it taken queues for it, spins for `spin_us`, then sleeps
//! (a futex wait). At the end of its critical section the holder hands the lock to the first in
//! the queue, who has it from then on, awake or not: first come, first served. Waking it is a call
//! of the kernel.
//!
//! - A holder that is preempted, moved or blocked in input and output keeps the lock.
//! - No critical section reaches beyond a barrier: one that the end of a thread's part would cut
//!   ends there. So nobody holds a lock that waits for anything, and somebody can always go on;
//!   and when a program starts again its locks are free.
//!
//! [`point`] says which programs' locks are events and what is drawn. All others are a queueing
//! model in the solution of rates, from which [`frequent`] derives returns from the kernel.

pub(crate) mod frequent;
pub(crate) mod point;
pub(crate) mod wait_time;

use super::Engine;
use point::{LockAcquisitions, LockState};
use std::collections::VecDeque;
use wait_time::WaitTime;

/// One lock; threads by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramLock {
    pub(crate) holder: Option<usize>,
    /// Threads that wait, first come first.
    pub(crate) queue: VecDeque<usize>,
    pub(crate) waited: WaitTime,
}

impl Engine {
    /// A thread has come to where it takes its next lock or lets go of the one that it holds.
    pub(crate) fn reach_lock(&mut self, t: usize) {
        match self.threads[t].locks.place {
            LockState::Inside(_) => self.release_lock(t),
            LockState::Outside | LockState::Waiting(_) => self.acquire_lock(t),
        }
    }

    /// A thread asks for the lock that is drawn.
    fn acquire_lock(&mut self, t: usize) {
        let p = self.threads[t].program;
        let number = self.threads[t].locks.draw_lock();
        let lock = &mut self.programs[p].locks[number];
        if lock.holder.is_none() {
            lock.holder = Some(t);
            self.threads[t].locks.enter();
        } else {
            lock.queue.push_back(t);
            lock.waited.set(self.calendar.now(), lock.queue.len());
            self.wait(t);
        }
    }

    /// A thread lets go of the lock that it holds, if it holds one, and the next has it.
    pub(crate) fn release_lock(&mut self, t: usize) {
        let p = self.threads[t].program;
        let Some(number) = self.threads[t].locks.leave() else {
            return;
        };
        let lock = &mut self.programs[p].locks[number];
        lock.holder = lock.queue.pop_front();
        lock.waited.set(self.calendar.now(), lock.queue.len());
        if let Some(next) = lock.holder {
            self.threads[next].locks.enter();
            let woken = usize::from(self.release(next));
            self.pay_for_waking(t, woken);
        }
    }
}

/// As many locks as a program's threads take by events.
pub(crate) fn locks(points: &LockAcquisitions) -> Vec<ProgramLock> {
    vec![ProgramLock::default(); points.count]
}

#[cfg(test)]
mod tests;
