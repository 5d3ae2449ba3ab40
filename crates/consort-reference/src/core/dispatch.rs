//! Dispatch: renaming, and entries in every buffer that an operation needs.

use super::buffers::Buffer;
use super::context::{
    DispatchStop, FetchedOp, InFlightOp, InFlightStore, OpProgress, ThreadContext, WrongPathOp,
};
use super::{ReferenceCore, ports::Works};
use crate::memory::DataOrigin;
use crate::outcome::SlotCause;
use consort_ops::{Op, OpKind};
use consort_sim::program::PARTIAL_LOAD_CYCLES;

/// Operations between dispatch and issue of a thread that issues in order, in cycles' worth.
const IN_ORDER_CYCLES: u32 = 2;

/// Slots left of a cycle.
struct CycleSlots {
    left: u32,
    threads: u32,
}

impl ReferenceCore<'_> {
    /// Dispatches what each thread can. Returns true if any operation was.
    pub(super) fn dispatch(&mut self) -> bool {
        let count = self.contexts.len();
        let front = &self.tables.front;
        let mut slots = CycleSlots {
            left: front.dispatch_width,
            threads: front.dispatch_threads,
        };
        // The thread that has waited longest comes first, so that no rhythm of one thread starves
        // another.
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&at| self.contexts[at].last_dispatch);
        let mut any = false;
        for at in order {
            any |= self.dispatch_thread(at, &mut slots);
        }
        any
    }

    fn dispatch_thread(&mut self, at: usize, slots: &mut CycleSlots) -> bool {
        let most = if slots.threads == 0 {
            0
        } else {
            self.width.min(slots.left)
        };
        let mut group = DispatchGroup::new(self, most);
        self.contexts[at].account.full = None;
        let stop = self.dispatch_some(at, &mut group);
        self.close_group(at, &group);
        let (ops, joined) = (group.ops, group.joined);
        let used = ops + self.dispatch_wrong_path(at, group);
        slots.left -= used;
        slots.threads -= u32::from(used > 0 && slots.threads > 0);
        self.charge(at, ops, most, stop);
        if used > 0 {
            self.contexts[at].last_dispatch = self.cycle;
        }
        used > 0 || joined > 0
    }

    /// Charges a thread's slots of a cycle: used ones and lost ones.
    fn charge(&mut self, at: usize, used: u32, most: u32, stop: DispatchStop) {
        let width = f64::from(self.width_alone);
        let context = &mut self.contexts[at];
        context.charge(
            DispatchStop::Cause(SlotCause::Base),
            f64::from(used) / width,
        );
        let stop = match stop {
            DispatchStop::Cause(SlotCause::Base) if used >= most => {
                DispatchStop::Cause(SlotCause::CoRunner)
            }
            DispatchStop::Cause(SlotCause::Base) => DispatchStop::Cause(SlotCause::Fetch),
            stop => stop,
        };
        let lost = (width - f64::from(used)).max(0.0) / width;
        context.charge(stop, lost);
        context.account.stop = Some(stop);
    }

    /// Dispatches operations of a thread, and says what ends it; `Base` where the thread has had
    /// what it may have. On cores that dispatch whole groups (Tendler et al., POWER4 system
    /// microarchitecture, IBM J. Res. Dev. 46(1), 2002), a group for which some buffer has no room
    /// gives its cycle to others; only into an empty window it goes in parts, as it might fit no
    /// buffer.
    fn dispatch_some(&mut self, at: usize, group: &mut DispatchGroup) -> DispatchStop {
        let mut places = std::mem::take(&mut self.places);
        let stop = loop {
            match self.reserve_one(at, group, places.len()) {
                Ok(queues) => places.push(queues),
                Err(stop) => break stop,
            }
        };
        let is_cut = self.tables.front.whole_groups && self.contexts[at].account.full.is_some();
        if is_cut && !self.contexts[at].flying.is_empty() {
            self.give_back(at, &places);
            *group = DispatchGroup::new(self, group.most);
        } else {
            for &queues in &places {
                self.enter_next(at, queues);
            }
        }
        places.clear();
        self.places = places;
        stop
    }

    /// Has the first operations in line give their entries back.
    fn give_back(&mut self, at: usize, places: &[[Option<u8>; 2]]) {
        for (i, &queues) in places.iter().enumerate() {
            let FetchedOp { op, fused, .. } = self.contexts[at].fetched[i];
            self.release_entries(at, &op, queues);
            if self.tables.group.is_none() && !fused.before {
                self.pools.window.give(at);
            }
        }
    }

    /// Takes entries of all buffers for the next operation of a thread behind so many others.
    fn reserve_one(
        &mut self,
        at: usize,
        group: &mut DispatchGroup,
        behind: usize,
    ) -> Result<[Option<u8>; 2], DispatchStop> {
        let next = self.contexts[at].fetched.get(behind).copied();
        let joins = next.is_some_and(|next| next.fused.before) && !group.in_groups;
        if !joins && !group.takes_more() {
            return Err(DispatchStop::Cause(SlotCause::Base));
        }
        let Some(next) = next.filter(|next| next.ready <= self.cycle) else {
            return Err(DispatchStop::Cause(self.starvation_cause(at)));
        };
        if !joins && !group.takes(&next.op) {
            return Err(DispatchStop::Cause(SlotCause::Base));
        }
        if behind == 0
            && let Some(buffer) = self.buffer_held_too_much(at)
        {
            return Err(self.note_full_buffer(at, buffer));
        }
        let works = self.ports.works(&next.op);
        let needs_entry = !joins && (!group.in_groups || group.ops == 0);
        let queues = self.find_room(at, &next.op, works, needs_entry)?;
        if joins {
            group.joined += 1;
        } else {
            group.add(&next.op);
            if !group.in_groups {
                self.pools.window.take(at);
            }
        }
        self.take_entries(at, &next.op, queues);
        Ok(queues)
    }

    /// Issue queues for an operation, if all buffers have room for it.
    fn find_room(
        &mut self,
        at: usize,
        op: &Op,
        works: Works,
        needs_entry: bool,
    ) -> Result<[Option<u8>; 2], DispatchStop> {
        let full = |core: &mut Self, buffer| Err(core.note_full_buffer(at, buffer));
        if needs_entry && !self.pools.window.has_room(at) {
            return full(self, Buffer::Window);
        }
        if op.kind == OpKind::Load && !self.pools.loads.has_room(at) {
            return full(self, Buffer::Loads);
        }
        if op.kind == OpKind::Store && !self.pools.stores.has_room(at) {
            return full(self, Buffer::Stores);
        }
        match register_file(op) {
            Some(true) if !self.pools.vector.has_room(at) => {
                return full(self, Buffer::VectorRegisters);
            }
            Some(false) if !self.pools.int.has_room(at) => {
                return full(self, Buffer::IntRegisters);
            }
            _ => {}
        }
        if self.in_order {
            let most = IN_ORDER_CYCLES * self.width;
            let fits = self.contexts[at].waiting < most;
            return if fits {
                Ok([None; 2])
            } else {
                full(self, Buffer::Issue)
            };
        }
        let Some(first) = self.pools.queue_for(works.first, at) else {
            return full(self, Buffer::Issue);
        };
        let second = match works.second {
            0 => Some(None),
            work => self.pools.queue_for(work, at),
        };
        // Address and data of one operation share the entry of a queue that holds both.
        match second {
            Some(second) if second == first => Ok([first, None]),
            Some(second) => Ok([first, second]),
            None => full(self, Buffer::Issue),
        }
    }

    /// The buffer that a thread fills so far that it dispatches nothing while others run: the
    /// window if it waits for too many lines from behind the L2.
    fn buffer_held_too_much(&self, at: usize) -> Option<Buffer> {
        if self.contexts.len() < 2 {
            return None;
        }
        let waits = self
            .tables
            .balance_misses
            .is_some_and(|most| self.has_missed_lines(at, most));
        if waits {
            return Some(Buffer::Window);
        }
        let share = self.tables.balance_share;
        Buffer::ALL.into_iter().find(|&buffer| match buffer {
            Buffer::Issue => {
                let mut queues = self.pools.issue.iter();
                queues.any(|queue| queue.pool.exceeds(at, share))
            }
            _ => self.pools.pool(buffer).exceeds(at, share),
        })
    }

    /// Returns true if a thread's loads wait for so many different lines that the L2 lacks.
    fn has_missed_lines(&self, at: usize, most: u32) -> bool {
        let late_line = |flying: &InFlightOp| {
            let is_late = flying.progress == OpProgress::Issued
                && flying.op.kind == OpKind::Load
                && flying.forwarded.is_none()
                && self.cycle > flying.issued.saturating_add(self.l2_cycles);
            let data = flying.op.data.filter(|_| is_late);
            data.map(|data| data.address / self.line_bytes)
        };
        let lines = || self.contexts[at].flying.iter().filter_map(late_line);
        let is_new = |(i, line): &(usize, u64)| lines().take(*i).all(|before| before != *line);
        let new = lines().enumerate().filter(is_new);
        new.take(most as usize).count() as u32 >= most
    }

    /// Puts the next operation in line into the window.
    fn enter_next(&mut self, at: usize, queues: [Option<u8>; 2]) {
        if let Some(next) = self.contexts[at].fetched.pop_front() {
            self.contexts[at].fetched_slots -= u32::from(!next.fused.before);
            let works = self.ports.works(&next.op);
            self.enter(at, &next, works, queues);
        }
    }

    fn enter(&mut self, at: usize, next: &FetchedOp, works: Works, queues: [Option<u8>; 2]) {
        let op = &next.op;
        let context = &mut self.contexts[at];
        let seq = context.next_number();
        let forwarded = context.forwarding_store(op);
        let missing = context.wait_for(op, seq, forwarded);
        for target in op.targets.into_iter().flatten() {
            context.writers[target.index()] = Some(seq);
        }
        if let (OpKind::Store, Some(data)) = (op.kind, op.data) {
            context
                .stores
                .push_back(InFlightStore::new(seq, data.address, u64::from(data.bytes)));
        }
        context.waiting += 1;
        self.dispatched += 1;
        context.flying.push_back(InFlightOp {
            op: *op,
            works,
            progress: if missing == 0 {
                OpProgress::Ready
            } else {
                OpProgress::Waiting
            },
            missing,
            dependents: Vec::new(),
            age: self.dispatched,
            dispatched: self.cycle,
            issued: 0,
            origin: DataOrigin::L1,
            queues,
            forwarded: forwarded.map(|(_, more)| more),
            mispredicted: next.mispredicted,
            ends_group: self.tables.group.is_none() && !next.fused.after,
            is_two: next.fused.branch,
            stalled: 0.0,
        });
        if missing == 0 {
            self.ready.push((self.dispatched, at, seq));
        }
    }

    /// Takes entries of all buffers but the window.
    fn take_entries(&mut self, at: usize, op: &Op, queues: [Option<u8>; 2]) {
        match op.kind {
            OpKind::Load => self.pools.loads.take(at),
            OpKind::Store => self.pools.stores.take(at),
            _ => {}
        }
        match register_file(op) {
            Some(true) => self.pools.vector.take(at),
            Some(false) => self.pools.int.take(at),
            None => {}
        }
        for queue in queues.into_iter().flatten() {
            self.pools.issue[usize::from(queue)].pool.take(at);
        }
    }

    /// Gives back what [`ReferenceCore::take_entries`] took.
    fn release_entries(&mut self, at: usize, op: &Op, queues: [Option<u8>; 2]) {
        match op.kind {
            OpKind::Load => self.pools.loads.give(at),
            OpKind::Store => self.pools.stores.give(at),
            _ => {}
        }
        match register_file(op) {
            Some(true) => self.pools.vector.give(at),
            Some(false) => self.pools.int.give(at),
            None => {}
        }
        for queue in queues.into_iter().flatten() {
            self.pools.issue[usize::from(queue)].pool.give(at);
        }
    }

    fn close_group(&mut self, at: usize, group: &DispatchGroup) {
        if group.in_groups && group.ops > 0 {
            self.pools.window.take(at);
            if let Some(last) = self.contexts[at].flying.back_mut() {
                last.ends_group = true;
            }
        }
    }

    /// Dispatches operations of a wrong path, as far as there is room; the slots that they take.
    fn dispatch_wrong_path(&mut self, at: usize, mut group: DispatchGroup) -> u32 {
        let front = &self.tables.front;
        let stages = u64::from(front.refill_cycles - front.issue_delay);
        let context = &self.contexts[at];
        let arrived = context
            .fetch
            .wrong_since
            .is_some_and(|since| self.cycle > since + stages);
        let recent = context.recent.len();
        // Before the branch itself is dispatched, its wrong path could take the room that it needs.
        let waits = group.ops > 0 || !context.fetched.is_empty();
        if self.contexts.len() < 2 || !arrived || waits || recent == 0 {
            return 0;
        }
        let full = self.contexts[at].account.full;
        while group.takes_more() && self.buffer_held_too_much(at).is_none() {
            let next = self.contexts[at].fetch.wrong_ops as usize % recent;
            let (op, waited) = self.contexts[at].recent[next];
            let works = self.ports.works(&op);
            let has_entry = !group.in_groups || group.ops == 0;
            let Ok(queues) = self.find_room(at, &op, works, has_entry) else {
                break;
            };
            if has_entry {
                self.pools.window.take(at);
            }
            group.add(&op);
            self.take_entries(at, &op, queues);
            let context = &mut self.contexts[at];
            context.fetch.wrong_ops += 1;
            context.wrong_path.push(WrongPathOp {
                op,
                queues,
                issued: self.cycle + waited,
                has_entry,
            });
        }
        // Buffers that stop a wrong path cost the thread nothing.
        self.contexts[at].account.full = full;
        group.ops
    }

    /// Gives back the issue queues' entries of operations of wrong paths that are issued now.
    pub(super) fn issue_wrong_paths(&mut self) {
        for at in 0..self.contexts.len() {
            for wrong in &mut self.contexts[at].wrong_path {
                if wrong.issued <= self.cycle {
                    for queue in std::mem::take(&mut wrong.queues).into_iter().flatten() {
                        self.pools.issue[usize::from(queue)].pool.give(at);
                    }
                }
            }
        }
    }

    /// Throws a wrong path away.
    pub(super) fn end_wrong_path(&mut self, at: usize) {
        for wrong in std::mem::take(&mut self.contexts[at].wrong_path) {
            self.release_entries(at, &wrong.op, wrong.queues);
            if wrong.has_entry {
                self.pools.window.give(at);
            }
        }
    }

    /// Cause for which a thread has nothing to dispatch.
    fn starvation_cause(&self, at: usize) -> SlotCause {
        let fetch = &self.contexts[at].fetch;
        if fetch.wrong_since.is_some() || self.cycle <= fetch.refill {
            SlotCause::Branch
        } else if fetch.passed_over {
            SlotCause::CoRunner
        } else {
            SlotCause::Fetch
        }
    }

    /// Cause for which a buffer has no room for a thread.
    fn note_full_buffer(&mut self, at: usize, buffer: Buffer) -> DispatchStop {
        self.contexts[at].account.full = Some(buffer);
        if self.pools.pool(buffer).is_crowded(at) {
            return DispatchStop::Cause(SlotCause::CoRunner);
        }
        let context = &self.contexts[at];
        let unwritten = context.stores.front().is_some_and(|store| store.committed);
        if buffer == Buffer::Stores && unwritten {
            return DispatchStop::Cause(SlotCause::Stores);
        }
        let Some(oldest) = context.flying.front() else {
            return DispatchStop::Cause(SlotCause::Commit);
        };
        match oldest.progress {
            OpProgress::Waiting => DispatchStop::Cause(SlotCause::Dependence),
            OpProgress::Ready => DispatchStop::Cause(SlotCause::Ports),
            OpProgress::Issued if oldest.op.kind == OpKind::Load => DispatchStop::Oldest,
            OpProgress::Issued => DispatchStop::Cause(self.full_buffer_cause(at, buffer)),
            OpProgress::Done => DispatchStop::Cause(SlotCause::Commit),
        }
    }

    /// Cause for which a buffer is full while the oldest operation is executed: ports where much of
    /// what waits has its operands.
    fn full_buffer_cause(&self, at: usize, buffer: Buffer) -> SlotCause {
        let ready = self.ready.iter().filter(|(_, t, _)| *t == at).count();
        let held = self.pools.used_entries(buffer, at) as usize;
        if buffer == Buffer::Issue && ready * 2 > held {
            SlotCause::Ports
        } else {
            SlotCause::Dependence
        }
    }
}

/// Returns true for an operation that takes a vector register, false for one that takes an integer
/// one; flags come along.
pub(super) fn register_file(op: &Op) -> Option<bool> {
    let mut targets = op.targets.into_iter().flatten();
    targets.next().map(consort_ops::Register::is_vector)
}

/// Operations that a thread dispatches in one cycle.
struct DispatchGroup {
    in_groups: bool,
    most: u32,
    ops: u32,
    /// Operations that share the slot of the one before them.
    joined: u32,
    plain: u32,
    branches: u32,
    plain_slots: u32,
    branch_slots: u32,
}

impl DispatchGroup {
    fn new(core: &ReferenceCore<'_>, most: u32) -> Self {
        let group = core.tables.group;
        // In a mode with narrower groups, branch slots shrink along.
        let slots = group.map_or(most, |group| group.slots).max(1);
        let width = core.width.min(slots);
        let branches = group.map_or(most, |group| (group.branches * width / slots).max(1));
        Self {
            in_groups: group.is_some(),
            most,
            ops: 0,
            joined: 0,
            plain: 0,
            branches: 0,
            plain_slots: if group.is_some() {
                width.saturating_sub(branches).max(1)
            } else {
                most
            },
            branch_slots: branches,
        }
    }

    fn takes_more(&self) -> bool {
        self.ops < self.most && !(self.in_groups && self.branches == self.branch_slots)
    }

    fn takes(&self, op: &Op) -> bool {
        op.kind == OpKind::Branch || self.plain < self.plain_slots
    }

    fn add(&mut self, op: &Op) {
        self.ops += 1;
        match op.kind {
            OpKind::Branch => self.branches += 1,
            _ => self.plain += 1,
        }
    }
}

impl InFlightStore {
    fn new(seq: u64, address: u64, bytes: u64) -> Self {
        Self {
            seq,
            address,
            bytes,
            executed: false,
            committed: false,
            sent: false,
            written: None,
        }
    }
}

impl ThreadContext<'_> {
    /// The store from which a load gets its data, and the cycles that this takes beyond the L1D's.
    ///
    /// Which store that is is known from the trace: as if memory dependences were predicted
    /// without errors.
    fn forwarding_store(&self, op: &Op) -> Option<(u64, u32)> {
        let data = op.data.filter(|_| op.kind == OpKind::Load)?;
        let bytes = u64::from(data.bytes);
        let store = self.store_before(data.address, bytes)?;
        let covers =
            store.address <= data.address && data.address + bytes <= store.address + store.bytes;
        Some((
            store.seq,
            if covers {
                0
            } else {
                PARTIAL_LOAD_CYCLES as u32
            },
        ))
    }

    /// Lets an operation wait for what writes its operands; how many of these are missing.
    fn wait_for(&mut self, op: &Op, seq: u64, forwarded: Option<(u64, u32)>) -> u8 {
        let sources = op.sources.into_iter().flatten();
        let writers: [Option<u64>; 4] = {
            let mut writers = sources.map(|source| self.writers[source.index()]);
            std::array::from_fn(|_| writers.next().flatten())
        };
        let stored = forwarded.map(|(store, _)| store);
        let mut missing = 0;
        for writer in writers.into_iter().chain([stored]).flatten() {
            if let Some(flying) = self.get(writer).filter(|f| f.progress != OpProgress::Done) {
                flying.dependents.push(seq);
                missing += 1;
            }
        }
        missing
    }
}
