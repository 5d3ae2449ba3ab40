//! Issue, oldest first, out of order or in order; commit in program order; and writing what was
//! committed.

use super::ReferenceCore;
use super::context::{InFlightStore, OpProgress, ThreadContext};
use crate::memory::{DataOrigin, MemoryHierarchy};
use consort_ops::OpKind;
use std::cmp::Reverse;

impl ReferenceCore<'_> {
    /// Issues what ports take. Returns true if any operation was.
    pub(super) fn issue(&mut self, memory: &mut MemoryHierarchy) -> bool {
        if self.in_order {
            return self.issue_in_order(memory);
        }
        let mut ready = std::mem::take(&mut self.ready);
        self.ports.clear_wanted();
        let delay = u64::from(self.tables.front.issue_delay);
        for &(_, at, seq) in &ready {
            let flying = self.contexts[at].get(seq);
            if let Some(flying) = flying.filter(|op| self.cycle >= op.dispatched + delay) {
                self.ports.note_ready(flying.works, at);
            }
        }
        let before = ready.len();
        ready.retain(|&(_, at, seq)| !self.try_issue(at, seq, memory));
        let any = ready.len() < before;
        self.ready = ready;
        any
    }

    /// Every thread's next operations in program order, up to the first that must wait.
    fn issue_in_order(&mut self, memory: &mut MemoryHierarchy) -> bool {
        // In order, the next operation is found by its number, not in this list.
        self.ready.clear();
        let mut left = self.tables.front.dispatch_width;
        let count = self.contexts.len();
        let mut any = false;
        for i in 0..count {
            let at = (self.cycle as usize + i) % count;
            while left > 0 && self.contexts[at].can_issue_next() {
                let seq = self.contexts[at].unissued;
                if !self.try_issue(at, seq, memory) {
                    break;
                }
                self.contexts[at].unissued += 1;
                left -= 1;
                any = true;
            }
        }
        any
    }

    fn try_issue(&mut self, at: usize, seq: u64, memory: &mut MemoryHierarchy) -> bool {
        let delay = u64::from(self.tables.front.issue_delay);
        let Some(flying) = self.contexts[at].get(seq) else {
            return true;
        };
        let works = flying.works;
        if self.cycle < flying.dispatched + delay {
            return false;
        }
        if !self.ports.issue(works, at, self.cycle) {
            return false;
        }
        flying.progress = OpProgress::Issued;
        flying.issued = self.cycle;
        let (op, forwarded) = (flying.op, flying.forwarded);
        let waited = self.cycle - flying.dispatched;
        for queue in flying.queues.into_iter().flatten() {
            self.pools.issue[usize::from(queue)].pool.give(at);
        }
        self.contexts[at].waiting -= 1;
        self.contexts[at].note_issue(op, waited);
        let latency = self.ports.latency(works);
        let result = match (op.kind, op.data, forwarded) {
            (OpKind::Load, Some(_), Some(more)) => Some(self.cycle + latency + u64::from(more)),
            (OpKind::Load, Some(data), None) => self.load(at, seq, data.address, memory),
            _ => Some(self.cycle + latency),
        };
        if let Some(result) = result {
            self.results.push(Reverse((result, at, seq)));
        }
        true
    }

    /// Reads from memory; the cycle of the data, if it is known at once.
    fn load(
        &mut self,
        at: usize,
        seq: u64,
        address: u64,
        memory: &mut MemoryHierarchy,
    ) -> Option<u64> {
        let context = &mut self.contexts[at];
        let now = self.clock.start(self.cycle);
        let time = memory.load(context.thread, seq, address, now)?;
        context.note_origin(seq, DataOrigin::L1);
        Some(self.clock.cycle(time))
    }
}

impl ReferenceCore<'_> {
    /// Commits finished operations. Returns true if there was one.
    pub(super) fn commit(&mut self) -> bool {
        let mut left = self.tables.front.commit_width;
        let count = self.contexts.len();
        let in_groups = self.tables.group.is_some();
        let mut any = false;
        for i in 0..count {
            let at = (self.cycle as usize + i) % count;
            while left > 0 && self.contexts[at].can_commit(in_groups) {
                left -= u32::from(self.commit_one(at));
                any = true;
            }
        }
        any
    }

    /// Commits the oldest operation of a thread. Returns true unless the next one shares its slot.
    fn commit_one(&mut self, at: usize) -> bool {
        let in_groups = self.tables.group.is_some();
        let context = &mut self.contexts[at];
        let seq = context.oldest;
        let Some(flying) = context.flying.pop_front() else {
            return true;
        };
        context.oldest += 1;
        let op = flying.op;
        for target in op.targets.into_iter().flatten() {
            let writer = &mut context.writers[target.index()];
            *writer = writer.filter(|&writer| writer != seq);
        }
        match op.kind {
            OpKind::Load => self.pools.loads.give(at),
            OpKind::Store => context.mark_store_committed(seq),
            _ => {}
        }
        let total = &mut context.account.total;
        total.operations += 1 + u64::from(flying.is_two);
        total.instructions += u64::from(op.first) + u64::from(flying.is_two);
        total.branches += u64::from(op.branch.is_some());
        total.branch_misses += u64::from(flying.mispredicted);
        total.forwarded += u64::from(flying.forwarded.is_some());
        if flying.ends_group {
            self.pools.window.give(at);
        }
        match super::dispatch::register_file(&op) {
            Some(true) => self.pools.vector.give(at),
            Some(false) => self.pools.int.give(at),
            None => {}
        }
        in_groups || flying.ends_group
    }

    /// Sends one committed store per thread on its way, and removes written stores.
    pub(super) fn write(&mut self, memory: &mut MemoryHierarchy) -> bool {
        let mut any = false;
        for at in 0..self.contexts.len() {
            while self.contexts[at].is_written(self.cycle) {
                self.contexts[at].stores.pop_front();
                self.pools.stores.give(at);
                any = true;
            }
            let mut stores = self.contexts[at].stores.iter();
            let next = stores.position(|store| store.committed && !store.sent);
            if let Some(index) = next {
                let store = self.contexts[at].stores[index];
                let written = self.send(at, &store, memory);
                let store = &mut self.contexts[at].stores[index];
                store.sent = true;
                store.written = written;
                any = true;
            }
        }
        any
    }

    /// Sends a store to where it is written; the cycle of that, if it is known at once.
    ///
    /// A write to a line that the L1D has takes no longer than its own cycle: the store leaves
    /// its queue in the next.
    fn send(
        &mut self,
        at: usize,
        store: &InFlightStore,
        memory: &mut MemoryHierarchy,
    ) -> Option<u64> {
        let now = self.clock.start(self.cycle);
        let context = &mut self.contexts[at];
        if !self.passes_stores {
            let there = memory.store(context.thread, store.seq, store.address, now);
            return there.map(|_| self.cycle + 1);
        }
        memory.touch_passing_store(context.thread, store.address);
        let line = memory.line(context.thread, store.address);
        if context.gathered.contains(&line) {
            return Some(self.cycle + 1);
        }
        context.gathered.push_back(line);
        if context.gathered.len() > self.gathered_lines {
            context.gathered.pop_front();
        }
        let there = memory.store_through(context.thread, store.seq, store.address, now);
        there.map(|time| self.clock.cycle(time).max(self.cycle + 1))
    }
}

impl ThreadContext<'_> {
    /// True if the oldest operation is done and, where groups are committed, all of its group.
    fn can_commit(&self, groups: bool) -> bool {
        let done = |progress| progress == OpProgress::Done;
        let Some(oldest) = self.flying.front() else {
            return false;
        };
        if !groups || !done(oldest.progress) {
            return done(oldest.progress);
        }
        let end = self.flying.iter().position(|flying| flying.ends_group);
        let group = end.map_or(0, |end| end + 1);
        self.flying
            .iter()
            .take(group)
            .all(|flying| done(flying.progress))
    }

    fn mark_store_committed(&mut self, seq: u64) {
        if let Some(store) = self.stores.iter_mut().find(|store| store.seq == seq) {
            store.committed = true;
        }
    }

    fn is_written(&self, now: u64) -> bool {
        let first = self.stores.front().and_then(|store| store.written);
        first.is_some_and(|written| written <= now)
    }
}
