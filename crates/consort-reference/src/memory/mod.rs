//! Caches, interconnect and memory: everything behind a core's loads, stores and fetch.
//!
//! Levels form a tree. A request that misses in one goes to the next when the latency of its own
//! level has passed, as an event; an answer fills every level that requested it. So every level
//! sees its requests in the order of time, and queues where its miss queue is full.

use crate::outcome::MemoryRequests;
use crate::time::Femtos;
pub(crate) use build::passes_stores;
use cache::Tlb;
use consort_sim::machine::detail::LlcFill;
use dram::Dram;
use level::{CacheLevel, LineRequest, MissOutcome, NextLevel, Rank};
pub(crate) use level::{DataOrigin, LineReply, Waiter};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use stream::StreamTable;

mod build;
pub(crate) mod cache;
mod dram;
mod level;
mod stream;

/// All levels and memories, and what is on its way between them.
#[derive(Debug)]
pub(crate) struct MemoryHierarchy {
    levels: Vec<CacheLevel>,
    drams: Vec<Dram>,
    threads: Vec<ThreadMemoryPath>,
    tlbs: Vec<Tlb>,
    prefetchers: Vec<LevelPrefetcher>,
    links: Vec<Interconnect>,
    events: BinaryHeap<Reverse<(Femtos, u64, MemoryEvent)>>,
    numbered: u64,
    line_bytes: u64,
    counts: Vec<MemoryRequests>,
    answers: Vec<LineReply>,
    /// Costs of an LLC of another domain, where those help.
    remote: Option<RemoteLlcs>,
}

/// Path of a thread's accesses.
#[derive(Clone, Copy, Debug)]
struct ThreadMemoryPath {
    code: usize,
    data: usize,
    tlb: usize,
    prefetcher: Option<usize>,
    /// The memory that holds its pages, and what its distance adds.
    home: usize,
    hop: Femtos,
    link: usize,
    /// Added to its virtual addresses, so that address spaces differ.
    base: u64,
    /// A cycle of its core.
    cycle: Femtos,
}

/// Streams and the level that they are brought to.
#[derive(Debug)]
struct LevelPrefetcher {
    streams: StreamTable,
    into: usize,
    /// Level whose demand accesses are looked at.
    watches: usize,
    most: usize,
}

#[derive(Clone, Copy, Debug)]
struct Interconnect {
    free: Femtos,
    line: Femtos,
}

/// LLCs that keep what others evict.
#[derive(Clone, Debug)]
struct RemoteLlcs {
    llcs: Vec<usize>,
    reach: Femtos,
    /// Position that takes the next evicted line.
    turn: usize,
}

#[derive(Clone, Copy, Debug)]
enum MemoryEvent {
    Ask {
        level: usize,
        request: LineRequest,
    },
    Memory {
        request: LineRequest,
    },
    Channel {
        dram: usize,
        channel: usize,
    },
    Come {
        level: usize,
        line: u64,
        origin: DataOrigin,
    },
}

// The heap orders events by time and number, which is unique, so events themselves never compare.
impl PartialEq for MemoryEvent {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for MemoryEvent {}
impl PartialOrd for MemoryEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for MemoryEvent {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl MemoryHierarchy {
    /// Loads for a thread. Returns when the data arrives, if that is known at once.
    pub(crate) fn load(&mut self, thread: usize, seq: u64, at: u64, now: Femtos) -> Option<Femtos> {
        let owner = self.threads[thread];
        let waiter = Waiter::Load { thread, seq };
        let delay = self.translate(thread, at);
        let line = self.line(thread, at);
        if delay > 0 {
            let request = demand(line, thread, waiter, false);
            self.push(
                now + delay,
                MemoryEvent::Ask {
                    level: owner.data,
                    request,
                },
            );
            return None;
        }
        self.access_level(owner.data, demand(line, thread, waiter, false), now)
    }

    /// Writes a committed store. Returns when it is written, if that is known at once.
    pub(crate) fn store(
        &mut self,
        thread: usize,
        seq: u64,
        at: u64,
        now: Femtos,
    ) -> Option<Femtos> {
        let (level, line) = (self.threads[thread].data, self.line(thread, at));
        let waiter = Waiter::Store { thread, seq };
        let delay = self.translate(thread, at);
        let request = demand(line, thread, waiter, true);
        if delay > 0 {
            self.push(now + delay, MemoryEvent::Ask { level, request });
            return None;
        }
        self.access_level(level, request, now)
    }

    /// A store that passes the L1D of a thread: keeps a copy there right, and when the L2 has it.
    pub(crate) fn store_through(
        &mut self,
        thread: usize,
        seq: u64,
        at: u64,
        now: Femtos,
    ) -> Option<Femtos> {
        let line = self.line(thread, at);
        let data = self.threads[thread].data;
        let NextLevel::Level(level) = self.levels[data].next else {
            return Some(now);
        };
        let mut request = demand(line, thread, Waiter::Store { thread, seq }, true);
        request.passed = self.levels[data].reach;
        self.access_level(level, request, now)
    }

    /// Touches a line that a passing store may write in the L1D.
    pub(crate) fn touch_passing_store(&mut self, thread: usize, at: u64) {
        let (data, line) = (self.threads[thread].data, self.line(thread, at));
        self.translate(thread, at);
        self.levels[data].cache.touch(line, false);
    }

    /// Fetches code for a thread. Returns true if it is there.
    pub(crate) fn fetch(&mut self, thread: usize, at: u64, now: Femtos) -> bool {
        let (level, line) = (self.threads[thread].code, self.line(thread, at));
        let there = self.access_level(
            level,
            demand(line, thread, Waiter::Fetch { thread }, false),
            now,
        );
        // The next line comes along, as all front ends fetch ahead in some way.
        let ahead = LineRequest {
            prefetch: true,
            ..demand(line + 1, thread, Waiter::None, false)
        };
        self.access_level(level, ahead, now);
        there.is_some()
    }

    /// The number of the line at a virtual address of a thread.
    pub(crate) fn line(&self, thread: usize, at: u64) -> u64 {
        at.wrapping_add(self.threads[thread].base) / self.line_bytes
    }

    /// Time of the next event here.
    pub(crate) fn next_event_time(&self) -> Option<Femtos> {
        self.events.peek().map(|Reverse((time, _, _))| *time)
    }

    /// Processes all events up to a time. Returns the replies that cores wait for.
    pub(crate) fn advance(&mut self, now: Femtos) -> Vec<LineReply> {
        while let Some(Reverse((time, _, event))) = self.events.peek().copied() {
            if time > now {
                break;
            }
            self.events.pop();
            self.process_event(time, event);
        }
        std::mem::take(&mut self.answers)
    }

    /// Accounts of a thread so far.
    pub(crate) fn counts(&self, thread: usize) -> MemoryRequests {
        self.counts[thread]
    }

    fn translate(&mut self, thread: usize, at: u64) -> Femtos {
        let owner = self.threads[thread];
        let at = at.wrapping_add(owner.base);
        let (cycles, walked) = self.tlbs[owner.tlb].translate(at);
        self.counts[thread].tlb_misses += u64::from(walked);
        (cycles * owner.cycle as f64) as Femtos
    }

    fn push(&mut self, time: Femtos, event: MemoryEvent) {
        self.numbered += 1;
        self.events.push(Reverse((time, self.numbered, event)));
    }

    fn process_event(&mut self, now: Femtos, event: MemoryEvent) {
        match event {
            MemoryEvent::Ask { level, request } => {
                if let Some(time) = self.access_level(level, request, now) {
                    let origin = origin(self.levels[level].rank);
                    self.answer(request.waiter, request.line, time, origin);
                }
                self.retry_waiting(level, now);
            }
            MemoryEvent::Memory { request } => self.reach_memory(request, now),
            MemoryEvent::Channel { dram, channel } => self.serve(dram, channel, now),
            MemoryEvent::Come {
                level,
                line,
                origin,
            } => self.receive_line(level, line, origin, now),
        }
    }

    /// Requests a line from a level. Returns when it arrives, if it is there.
    fn access_level(&mut self, at: usize, request: LineRequest, now: Femtos) -> Option<Femtos> {
        let requested = !request.prefetch && !request.write_back;
        if requested && self.levels[at].rank == Rank::Data {
            self.counts[request.thread].l1d_accesses += 1;
        }
        let level = &mut self.levels[at];
        if level.cache.touch(request.line, request.write) {
            let time = level.hand_over(now, request.passed);
            if level.fill == LlcFill::Victims && requested {
                level.cache.remove_clean(request.line);
            }
            self.prefetch_ahead(at, &request, now);
            return Some(time);
        }
        let queued = level.note_miss(request);
        if queued == MissOutcome::Sent {
            self.count_miss(at, &request);
            self.send(at, request, now);
        }
        if queued != MissOutcome::Full {
            self.prefetch_ahead(at, &request, now);
        }
        None
    }

    /// Sends a request on to what comes after a level.
    fn send(&mut self, at: usize, request: LineRequest, now: Femtos) {
        let reach = self.levels[at].reach;
        let then = now + reach.saturating_sub(request.passed);
        let request = LineRequest {
            waiter: Waiter::Level(at),
            write: false,
            passed: reach,
            ..request
        };
        match self.levels[at].next {
            NextLevel::Level(level) => self.push(then, MemoryEvent::Ask { level, request }),
            NextLevel::Memory => self.send_beyond_llc(at, request, then),
        }
    }

    /// Behind an LLC: those of other domains, then memory.
    fn send_beyond_llc(&mut self, at: usize, request: LineRequest, now: Femtos) {
        let elsewhere = self.remote.as_ref().and_then(|remote| {
            let mut others = remote.llcs.iter().copied().filter(|&llc| llc != at);
            let there = others.find(|&llc| self.levels[llc].cache.holds(request.line))?;
            Some((there, remote.reach))
        });
        match elsewhere {
            Some((there, reach)) => {
                self.levels[there].cache.remove(request.line);
                let time = now + reach.saturating_sub(request.passed);
                let (level, line, origin) = (at, request.line, DataOrigin::Llc);
                self.push(
                    time,
                    MemoryEvent::Come {
                        level,
                        line,
                        origin,
                    },
                );
            }
            None => self.push(now, MemoryEvent::Memory { request }),
        }
    }

    fn reach_memory(&mut self, request: LineRequest, now: Femtos) {
        let home = self.threads[request.thread].home;
        self.counts[request.thread].memory_lines += 1;
        if let Some(channel) = self.drams[home].take(request) {
            self.push(
                now,
                MemoryEvent::Channel {
                    dram: home,
                    channel,
                },
            );
        }
    }

    fn serve(&mut self, dram: usize, channel: usize, now: Femtos) {
        let served = self.drams[dram].serve(channel, now);
        if let Some(again) = served.again {
            self.push(again, MemoryEvent::Channel { dram, channel });
        }
        if let Some((request, time)) = served.answered {
            let owner = self.threads[request.thread];
            let link = &mut self.links[owner.link];
            let start = (time + owner.hop).max(link.free);
            link.free = start + link.line;
            self.answer(request.waiter, request.line, start, DataOrigin::Memory);
        }
    }

    fn answer(&mut self, waiter: Waiter, line: u64, time: Femtos, origin: DataOrigin) {
        match waiter {
            Waiter::None => {}
            Waiter::Level(level) => self.push(
                time,
                MemoryEvent::Come {
                    level,
                    line,
                    origin,
                },
            ),
            _ => self.answers.push(LineReply {
                waiter,
                time,
                origin,
            }),
        }
    }

    /// Shows a demand access to the prefetcher.
    fn prefetch_ahead(&mut self, at: usize, request: &LineRequest, now: Femtos) {
        if request.prefetch || request.write_back {
            return;
        }
        let Some(index) = self.threads[request.thread].prefetcher else {
            return;
        };
        let prefetcher = &mut self.prefetchers[index];
        if prefetcher.watches != at {
            return;
        }
        let (into, most) = (prefetcher.into, prefetcher.most);
        for line in prefetcher.streams.note_access(request.thread, request.line) {
            if self.levels[into].expects(line) || self.levels[into].pending_lines() >= most {
                continue;
            }
            let ahead = LineRequest {
                prefetch: true,
                passed: self.levels[at].reach,
                ..demand(line, request.thread, Waiter::None, false)
            };
            self.push(
                now,
                MemoryEvent::Ask {
                    level: into,
                    request: ahead,
                },
            );
        }
    }

    fn count_miss(&mut self, at: usize, request: &LineRequest) {
        let counts = &mut self.counts[request.thread];
        if request.prefetch {
            counts.prefetches += 1;
            return;
        }
        let count = match self.levels[at].rank {
            Rank::Code => &mut counts.l1i_misses,
            Rank::Data => &mut counts.l1d_misses,
            Rank::L2 => &mut counts.l2_misses,
            Rank::Llc => &mut counts.llc_misses,
        };
        *count += 1;
    }
}

fn demand(line: u64, thread: usize, waiter: Waiter, write: bool) -> LineRequest {
    LineRequest {
        line,
        thread,
        waiter,
        write,
        prefetch: false,
        write_back: false,
        passed: 0,
    }
}

fn origin(rank: Rank) -> DataOrigin {
    match rank {
        Rank::Code | Rank::Data => DataOrigin::L1,
        Rank::L2 => DataOrigin::L2,
        Rank::Llc => DataOrigin::Llc,
    }
}

impl MemoryHierarchy {
    /// Keeps a line that comes to a level, and passes it to its waiters.
    pub(super) fn receive_line(&mut self, at: usize, line: u64, origin: DataOrigin, now: Femtos) {
        let (waiters, write) = self.levels[at].take_waiters(line);
        let level = &self.levels[at];
        let keeps = level.fill != LlcFill::Victims || waiters.iter().all(|w| *w == Waiter::None);
        if keeps {
            self.fill(at, line, write, now);
        }
        for waiter in waiters {
            self.answer(waiter, line, now, origin);
        }
        self.retry_waiting(at, now);
    }

    /// Retries one request that waits for room; the next follows it, because the line may be there
    /// by then.
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

    /// Removes a line from the levels before. Returns true if one of them had written to it.
    fn recall(&mut self, at: usize, line: u64) -> bool {
        let before = self.levels[at].before.clone();
        before.into_iter().fold(false, |dirty, level| {
            let own = self.levels[level].cache.remove(line).unwrap_or(false);
            self.recall(level, line) || own || dirty
        })
    }

    /// Evicts a line of an LLC: to an LLC that no thread uses, or to memory if it was written to.
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
                ..demand(line, self.owner(line), Waiter::None, true)
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
