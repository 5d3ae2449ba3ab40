//! Fetch: which thread, how much, and where prediction leads it.

use super::ReferenceCore;
use super::context::{FetchedOp, FusedWith, ThreadContext};
use crate::memory::MemoryHierarchy;
use consort_ops::predictor::BranchPrediction;
use consort_ops::{FusedPair, Op};
use consort_sim::machine::detail::FetchPolicy;

/// Code that a line of decoded operations covers, bytes.
const DECODED_BYTES: u64 = 32;

/// Rest of a thread's turn.
struct FetchTurn {
    ops: u32,
    block: Option<u64>,
    decoded: Option<u64>,
}

impl ReferenceCore<'_> {
    /// Fetches for as many threads as can in a cycle. Returns true if any operation was fetched.
    pub(super) fn fetch(&mut self, memory: &mut MemoryHierarchy) -> bool {
        let mut turns = self.tables.front.fetch_threads;
        let mut any = false;
        for at in self.fetch_order() {
            let wants = self.wants_fetch(at);
            let turn = wants && turns > 0;
            self.contexts[at].fetch.passed_over = wants && !turn;
            if !turn {
                continue;
            }
            turns -= 1;
            self.contexts[at].last_fetch = self.cycle;
            if self.contexts[at].fetch.wrong_since.is_none() {
                any |= self.fetch_thread(at, memory);
            }
        }
        any
    }

    fn fetch_order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.contexts.len()).collect();
        order.sort_by_key(|&at| self.contexts[at].last_fetch);
        if self.tables.front.fetch_policy == FetchPolicy::Icount {
            order.sort_by_key(|&at| self.contexts[at].ops_before_issue());
        }
        order
    }

    /// True if a thread would fetch, on the wrong path if need be as far as its window goes.
    fn wants_fetch(&self, at: usize) -> bool {
        let context = &self.contexts[at];
        if context.fetch.waits || self.cycle < context.fetch.resume {
            return false;
        }
        if context.fetch.wrong_since.is_some() {
            return self.pools.window.has_room(at);
        }
        // A turn is not begun for less than it can bring.
        context.fetched_slots + self.widest_turn() <= self.fetch_room()
    }

    /// Slots that a turn brings at most.
    fn widest_turn(&self) -> u32 {
        let front = &self.tables.front;
        let decoded = front.op_cache.map_or(0, |cache| cache.width);
        front.fetch_width.max(decoded)
    }

    /// Slots between fetch and dispatch: the buffer, and the stages before it; each takes what a
    /// turn brings.
    fn fetch_room(&self) -> u32 {
        let (front, widest) = (&self.tables.front, self.widest_turn());
        front.buffer_ops.max(widest) + widest * (front.refill_cycles - front.issue_delay)
    }

    fn fetch_thread(&mut self, at: usize, memory: &mut MemoryHierarchy) -> bool {
        let mut turn = FetchTurn {
            ops: self.tables.front.fetch_width,
            block: None,
            decoded: None,
        };
        let mut any = false;
        while self.contexts[at].fetched_slots < self.fetch_room() {
            let Some(op) = self.contexts[at].feed.peek().copied() else {
                break;
            };
            let joins = self.contexts[at].joins_next;
            if (turn.ops == 0 && !joins) || !self.fetch_code(at, &op, &mut turn, memory) {
                break;
            }
            turn.ops -= u32::from(!joins);
            let (op, fused) = self.take_op(at, op);
            any = true;
            if !self.enqueue_op(at, op, fused) {
                break;
            }
        }
        any
    }

    /// Takes an operation from the feed, with a branch that is fused with it.
    fn take_op(&mut self, at: usize, op: Op) -> (Op, FusedWith) {
        let fuses = self.tables.front.fuses;
        let context = &mut self.contexts[at];
        context.feed.advance();
        let find = |op: &Op, next: Option<&Op>| {
            let pair = next.and_then(|next| FusedPair::find(op.fusion, next.fusion, !next.first));
            pair.filter(|pair| fuses[pair.index()])
        };
        let before = std::mem::take(&mut context.joins_next);
        match find(&op, context.feed.peek()) {
            Some(pair) if pair.is_executed_as_one() => {
                let branch = context.feed.peek().copied().unwrap_or(op);
                context.feed.advance();
                let joined = Op {
                    first: op.first,
                    sources: op.sources,
                    targets: op.targets,
                    ..branch
                };
                let fused = FusedWith {
                    before,
                    after: false,
                    branch: true,
                };
                (joined, fused)
            }
            pair => {
                context.joins_next = pair.is_some();
                let fused = FusedWith {
                    before,
                    after: pair.is_some(),
                    branch: false,
                };
                (op, fused)
            }
        }
    }

    /// True if an operation's code is there in this turn.
    fn fetch_code(
        &mut self,
        at: usize,
        op: &Op,
        turn: &mut FetchTurn,
        memory: &mut MemoryHierarchy,
    ) -> bool {
        if !op.first {
            return true;
        }
        if let Some(decoded) = self.find_decoded(at, op, turn) {
            return decoded;
        }
        let block = op.address / u64::from(self.tables.front.fetch_bytes);
        if turn.block.is_some_and(|before| before != block) || turn.decoded.is_some() {
            return false;
        }
        turn.block = Some(block);
        self.fetch_line(at, op, memory)
    }

    /// True if decoded operations are there; `None` if they must be fetched and decoded, which
    /// brings them in.
    fn find_decoded(&mut self, at: usize, op: &Op, turn: &mut FetchTurn) -> Option<bool> {
        let spec = self.tables.front.op_cache?;
        let parts = self.op_caches.len();
        let window = op.address / DECODED_BYTES;
        // Threads do not share what is decoded; the low bits choose the set.
        let key = (self.contexts[at].thread as u64) << 56 | window;
        if turn.decoded == Some(window) {
            return Some(true);
        }
        if turn.block.is_some() {
            self.op_caches[at % parts].fill(key, false);
            return None;
        }
        if !self.op_caches[at % parts].touch(key, false) {
            // Behind decoded operations the turn ends, and the next one decodes.
            if turn.decoded.is_none() {
                self.op_caches[at % parts].fill(key, false);
            }
            return None;
        }
        if turn.decoded.is_none() {
            turn.ops = spec.width;
        }
        turn.decoded = Some(window);
        Some(true)
    }

    fn fetch_line(&mut self, at: usize, op: &Op, memory: &mut MemoryHierarchy) -> bool {
        let now = self.clock.start(self.cycle);
        let context = &mut self.contexts[at];
        let line = memory.line(context.thread, op.address);
        if context.fetch.line == Some(line) {
            return true;
        }
        context.fetch.line = Some(line);
        let there = memory.fetch(context.thread, op.address, now);
        context.fetch.waits = !there;
        there
    }

    /// Queues an operation for dispatch. Returns true if fetch continues behind it in this cycle.
    fn enqueue_op(&mut self, at: usize, op: Op, fused: FusedWith) -> bool {
        let now = self.cycle;
        let front = &self.tables.front;
        let depth = u64::from(front.refill_cycles - front.issue_delay).max(1);
        let tables = at % self.predictors.len();
        let bubble = self.bubble;
        let context = &mut self.contexts[at];
        let after = op.address + u64::from(op.length);
        let prediction = op.branch.map_or(BranchPrediction::Right, |branch| {
            self.predictors[tables].predict(&mut context.history, op.address, after, branch)
        });
        context.fetched_slots += u32::from(!fused.before);
        context.fetched.push_back(FetchedOp {
            op,
            ready: now + depth,
            mispredicted: prediction == BranchPrediction::Wrong,
            fused,
        });
        match prediction {
            BranchPrediction::Wrong => context.fetch.wrong_since = Some(now),
            // Decoding, half-way to execution, finds the target.
            BranchPrediction::Late => context.fetch.resume = now + depth / 2 + 1,
            BranchPrediction::Computed => context.fetch.resume = now + bubble + 1,
            BranchPrediction::Right => {}
        }
        prediction == BranchPrediction::Right && op.branch.is_none_or(|branch| !branch.taken)
    }
}

impl ThreadContext<'_> {
    /// Operations between fetch and issue.
    fn ops_before_issue(&self) -> usize {
        self.fetched.len() + self.waiting as usize + self.fetch.wrong_ops as usize
    }
}
