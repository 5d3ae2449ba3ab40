//! Lines that come to a level, and what becomes of those that make room for them.

use super::level::{NextLevel, Rank};
use super::request::{DataOrigin, LineRequest, Waiter};
use super::{MemoryEvent, MemoryHierarchy, ThreadMemoryPath, demand};
use crate::time::Femtos;
use consort_sim::machine::detail::LlcFill;

impl MemoryHierarchy {
    /// A line comes to a level: it is kept, and goes on to who waited.
    pub(super) fn receive_line(&mut self, at: usize, line: u64, origin: DataOrigin, now: Femtos) {
        let (waiters, write) = self.levels[at].take_waiters(line);
        let level = &self.levels[at];
        let keeps = level.fill != LlcFill::Victims || waiters.iter().all(|w| *w == Waiter::Nobody);
        if keeps {
            self.fill(at, line, write, now);
        }
        for waiter in waiters {
            self.answer(waiter, line, now, origin);
        }
        self.retry_waiting(at, now);
    }

    /// Asks for what waits for room, one after the other: what is there by then needs none.
    pub(super) fn retry_waiting(&mut self, level: usize, now: Femtos) {
        if let Some(request) = self.levels[level].pop_waiting() {
            self.push(now, MemoryEvent::Ask { level, request });
        }
    }

    /// Puts a line into a level and deals with the one that made room.
    fn fill(&mut self, at: usize, line: u64, dirty: bool, now: Femtos) {
        let Some(victim) = self.levels[at].cache.fill(line, dirty) else {
            return;
        };
        let mut dirty = victim.dirty;
        if self.levels[at].fill == LlcFill::Inclusive {
            dirty |= self.recall(at, victim.line);
        }
        match self.levels[at].next {
            NextLevel::Level(next) if dirty || self.levels[next].fill == LlcFill::Victims => {
                self.fill(next, victim.line, dirty, now);
            }
            NextLevel::Memory => self.evict_line(at, victim.line, dirty, now),
            NextLevel::Level(_) => {}
        }
    }

    /// Takes a line out of the levels before; whether one had written to it.
    fn recall(&mut self, at: usize, line: u64) -> bool {
        let before = self.levels[at].before.clone();
        before.into_iter().fold(false, |dirty, level| {
            let own = self.levels[level].cache.remove(line).unwrap_or(false);
            self.recall(level, line) || own || dirty
        })
    }

    /// A line leaves an LLC: to one that nobody else uses, or to memory if it was written to.
    fn evict_line(&mut self, at: usize, line: u64, dirty: bool, now: Femtos) {
        let idle = self.remote.as_mut().and_then(|remote| {
            let count = remote.llcs.len();
            remote.turn = (remote.turn + 1) % count;
            let others = (0..count).map(|i| remote.llcs[(remote.turn + i) % count]);
            let mut others = others.filter(|&llc| llc != at);
            others.find(|&llc| self.levels[llc].before.is_empty())
        });
        let out = match idle.filter(|_| self.levels[at].rank == Rank::Llc) {
            Some(idle) if !self.levels[at].before.is_empty() => {
                let victim = self.levels[idle].cache.fill(line, dirty);
                victim.filter(|v| v.dirty).map(|v| v.line)
            }
            _ => dirty.then_some(line),
        };
        if let Some(line) = out {
            let request = LineRequest {
                write_back: true,
                ..demand(line, self.owner(line), Waiter::Nobody, true)
            };
            self.push(now, MemoryEvent::Memory { request });
        }
    }

    /// The thread whose address space a line is in.
    fn owner(&self, line: u64) -> usize {
        let space = |thread: &ThreadMemoryPath| thread.base / self.line_bytes;
        let below = (0..self.threads.len()).filter(|&t| space(&self.threads[t]) <= line);
        below.max_by_key(|&t| space(&self.threads[t])).unwrap_or(0)
    }
}
