//! Lines that come to a level, and what becomes of those that make room for them.

use super::level::{Next, Rank};
use super::request::{Origin, Request, Waiter};
use super::{Event, Memory, Thread, demand};
use crate::time::Femtos;
use consort_sim::machine::detail::LlcFill;

impl Memory {
    /// A line comes to a level: it is kept, and goes on to who waited.
    pub(super) fn come(&mut self, at: usize, line: u64, origin: Origin, now: Femtos) {
        let (waiters, write) = self.levels[at].came(line);
        let level = &self.levels[at];
        let keeps = level.fill != LlcFill::Victims || waiters.iter().all(|w| *w == Waiter::Nobody);
        if keeps {
            self.fill(at, line, write, now);
        }
        for waiter in waiters {
            self.answer(waiter, line, now, origin);
        }
        self.ask_again(at, now);
    }

    /// Asks for what waits for room, one after the other: what is there by then needs none.
    pub(super) fn ask_again(&mut self, level: usize, now: Femtos) {
        if let Some(request) = self.levels[level].again() {
            self.push(now, Event::Ask { level, request });
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
            Next::Level(next) if dirty || self.levels[next].fill == LlcFill::Victims => {
                self.fill(next, victim.line, dirty, now);
            }
            Next::Memory => self.leave(at, victim.line, dirty, now),
            Next::Level(_) => {}
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
    fn leave(&mut self, at: usize, line: u64, dirty: bool, now: Femtos) {
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
            let request = Request {
                write_back: true,
                ..demand(line, self.owner(line), Waiter::Nobody, true)
            };
            self.push(now, Event::Memory { request });
        }
    }

    /// The thread whose address space a line is in.
    fn owner(&self, line: u64) -> usize {
        let space = |thread: &Thread| thread.base / self.line_bytes;
        let below = (0..self.threads.len()).filter(|&t| space(&self.threads[t]) <= line);
        below.max_by_key(|&t| space(&self.threads[t])).unwrap_or(0)
    }
}
