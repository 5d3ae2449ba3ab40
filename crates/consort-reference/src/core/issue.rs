//! Issue: oldest first, out of order or in order.

use super::ReferenceCore;
use super::context::OpProgress;
use crate::memory::{DataOrigin, MemoryHierarchy};
use consort_ops::OpKind;
use std::cmp::Reverse;

impl ReferenceCore<'_> {
    /// Issues what ports take; whether anything was.
    pub(super) fn issue(&mut self, memory: &mut MemoryHierarchy) -> bool {
        if self.in_order {
            return self.issue_in_order(memory);
        }
        let mut ready = std::mem::take(&mut self.ready);
        self.ports.clear_wanted();
        for &(_, at, seq) in &ready {
            if let Some(flying) = self.contexts[at].get(seq) {
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
        // What becomes ready is found in its order.
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
        let Some(flying) = self.contexts[at].get(seq) else {
            return true;
        };
        let works = flying.works;
        if !self.ports.issue(works, at, self.cycle) {
            return false;
        }
        flying.progress = OpProgress::Issued;
        flying.issued = self.cycle;
        let (op, forwarded) = (flying.op, flying.forwarded);
        for queue in flying.queues.into_iter().flatten() {
            self.pools.issue[usize::from(queue)].pool.give(at);
        }
        self.contexts[at].waiting -= 1;
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
