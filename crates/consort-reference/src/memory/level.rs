//! One cache with what is on its way to it, and the requests that travel through the levels.

use super::cache::SetAssociativeCache;
use crate::time::Femtos;
use consort_sim::machine::detail::LlcFill;
use std::collections::VecDeque;

/// Next place at which a level requests lines that it lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextLevel {
    /// The level with this index.
    Level(usize),
    /// Memory.
    Memory,
}

/// Rank of a level in its hierarchy, for accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    /// L1 of code.
    Code,
    /// L1 of data.
    Data,
    /// L2.
    L2,
    /// LLC.
    Llc,
}

/// A cache, its miss queue and what waits for room in it.
#[derive(Debug)]
pub(crate) struct CacheLevel {
    pub(crate) rank: Rank,
    pub(crate) cache: SetAssociativeCache,
    pub(crate) next: NextLevel,
    /// Load-to-use latency of a hit.
    pub(crate) reach: Femtos,
    /// Time that handing a line over takes.
    pub(crate) service: Femtos,
    pub(crate) fill: LlcFill,
    /// Levels that ask this one.
    pub(crate) before: Vec<usize>,
    /// Time from which it can hand over the next line.
    free: Femtos,
    misses: Vec<PendingMiss>,
    capacity: usize,
    waiting: VecDeque<LineRequest>,
}

#[derive(Debug)]
struct PendingMiss {
    line: u64,
    write: bool,
    waiters: Vec<Waiter>,
}

/// Outcome of a request that missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissOutcome {
    /// It goes to the next level.
    Sent,
    /// The line is on its way already.
    Merged,
    /// It waits for room, or was a prefetch and is forgotten.
    Full,
}

impl CacheLevel {
    /// An empty level.
    pub(crate) fn new(
        rank: Rank,
        cache: SetAssociativeCache,
        next: NextLevel,
        reach: Femtos,
        misses: u32,
    ) -> Self {
        Self {
            rank,
            cache,
            next,
            reach,
            service: 0,
            fill: LlcFill::Fetched,
            before: Vec::new(),
            free: 0,
            misses: Vec::new(),
            capacity: misses.max(1) as usize,
            waiting: VecDeque::new(),
        }
    }

    /// Time at which a line that is here arrives if it is requested at `now`.
    pub(crate) fn hand_over(&mut self, now: Femtos, passed: Femtos) -> Femtos {
        let start = now.max(self.free);
        self.free = start + self.service;
        start + self.reach.saturating_sub(passed)
    }

    /// Notes that a line is missing.
    pub(crate) fn note_miss(&mut self, request: LineRequest) -> MissOutcome {
        let known = self
            .misses
            .iter_mut()
            .find(|miss| miss.line == request.line);
        if let Some(miss) = known {
            miss.write |= request.write;
            miss.waiters.push(request.waiter);
            return MissOutcome::Merged;
        }
        // Prefetches leave half of the queue to demand misses.
        if request.waiter == Waiter::None && self.misses.len() * 2 >= self.capacity {
            return MissOutcome::Full;
        }
        if self.misses.len() >= self.capacity {
            self.waiting.push_back(request);
            return MissOutcome::Full;
        }
        self.misses.push(PendingMiss {
            line: request.line,
            write: request.write,
            waiters: vec![request.waiter],
        });
        MissOutcome::Sent
    }

    /// Waiters for a line that has come, and whether one will write to it.
    pub(crate) fn take_waiters(&mut self, line: u64) -> (Vec<Waiter>, bool) {
        let Some(at) = self.misses.iter().position(|miss| miss.line == line) else {
            return (Vec::new(), false);
        };
        let miss = self.misses.swap_remove(at);
        (miss.waiters, miss.write)
    }

    /// Request that has waited longest for room, if there is room now.
    pub(crate) fn pop_waiting(&mut self) -> Option<LineRequest> {
        if self.misses.len() < self.capacity {
            self.waiting.pop_front()
        } else {
            None
        }
    }

    /// Lines on their way here.
    pub(crate) fn pending_lines(&self) -> usize {
        self.misses.len()
    }

    /// True if a line is on its way here.
    pub(crate) fn expects(&self, line: u64) -> bool {
        self.misses.iter().any(|miss| miss.line == line)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DataOrigin {
    /// The L1 itself.
    L1,
    /// The L2.
    L2,
    /// The LLC, or that of another domain.
    Llc,
    /// Memory.
    Memory,
}

/// Waiter for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiter {
    /// No waiter: a prefetch or a line written back.
    None,
    /// A load of a thread, by its sequence number.
    Load {
        /// Index of the thread.
        thread: usize,
        /// Sequence number.
        seq: u64,
    },
    /// Fetch of a thread.
    Fetch {
        /// Index of the thread.
        thread: usize,
    },
    /// A store of a thread, by its sequence number.
    Store {
        /// Index of the thread.
        thread: usize,
        /// Sequence number.
        seq: u64,
    },
    /// A level before, by its index, for the line.
    Level(usize),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LineRequest {
    /// Number of the line.
    pub(crate) line: u64,
    /// Thread on whose account it travels.
    pub(crate) thread: usize,
    pub(crate) waiter: Waiter,
    /// True if the first level that it reaches shall write to the line.
    pub(crate) write: bool,
    /// True if no operation needs it yet.
    pub(crate) prefetch: bool,
    /// True for a line on its way to memory.
    pub(crate) write_back: bool,
    /// Part of the load-to-use latency that has passed.
    pub(crate) passed: Femtos,
}

/// The reply to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineReply {
    /// Waiter that it was for.
    pub(crate) waiter: Waiter,
    /// Time at which it is there.
    pub(crate) time: Femtos,
    pub(crate) origin: DataOrigin,
}
