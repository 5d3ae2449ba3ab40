//! Dispatch: renaming, and entries in every buffer that an operation needs.

use super::buffers::Buffer;
use super::context::{Context, Flying, Progress, Stop, Store};
use super::{Core, ports::Works};
use crate::memory::Origin;
use crate::outcome::Cause;
use consort_ops::{Kind, Op};

/// Cycles more than the L1D's that a load takes which gets part of its bytes from a store: it
/// waits until the store is written (some 12 in Fog's microarchitecture manual).
const PARTIAL_CYCLES: u32 = 11;
/// Operations between dispatch and issue of a thread that issues in order, in cycles' worth.
const IN_ORDER_CYCLES: u32 = 2;

/// Slots left of a cycle.
struct Slots {
    left: u32,
    threads: u32,
}

impl Core<'_> {
    /// Dispatches of every thread what it can; whether anything was.
    pub(super) fn dispatch(&mut self) -> bool {
        let count = self.contexts.len();
        let front = &self.tables.front;
        let mut slots = Slots {
            left: front.dispatch_width,
            threads: front.dispatch_threads,
        };
        // Who has waited longest comes first, so that no rhythm of one thread starves another.
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&at| self.contexts[at].last_dispatch);
        let mut any = false;
        for at in order {
            any |= self.dispatch_thread(at, &mut slots);
        }
        any
    }

    fn dispatch_thread(&mut self, at: usize, slots: &mut Slots) -> bool {
        let most = if slots.threads == 0 {
            0
        } else {
            self.width.min(slots.left)
        };
        let mut group = Group::new(self, most);
        self.contexts[at].account.full = None;
        let stop = self.dispatch_some(at, &mut group);
        self.close_group(at, &group);
        let wrong = self.throw_away(at, &group);
        let used = group.ops + wrong;
        slots.left -= used;
        slots.threads -= u32::from(used > 0 && slots.threads > 0);
        self.charge(at, group.ops, most, stop);
        if used > 0 {
            self.contexts[at].last_dispatch = self.cycle;
        }
        used > 0
    }

    /// Charges a cycle's slots of a thread: those that it used, and those that it lost.
    fn charge(&mut self, at: usize, used: u32, most: u32, stop: Stop) {
        let width = f64::from(self.width_alone);
        let context = &mut self.contexts[at];
        context.charge(Stop::Cause(Cause::Base), f64::from(used) / width);
        let stop = match stop {
            Stop::Cause(Cause::Base) if used >= most => Stop::Cause(Cause::CoRunner),
            Stop::Cause(Cause::Base) => Stop::Cause(Cause::Fetch),
            stop => stop,
        };
        let lost = (width - f64::from(used)).max(0.0) / width;
        context.charge(stop, lost);
        context.account.stop = Some(stop);
    }

    /// Dispatches operations of a thread, and says what ends it; `Base` where the thread has had
    /// what it may have. A group is dispatched whole or not at all (Tendler et al., POWER4 system
    /// microarchitecture, IBM J. Res. Dev. 46(1), 2002); only into an empty window it goes in parts,
    /// as it might fit no buffer.
    fn dispatch_some(&mut self, at: usize, group: &mut Group) -> Stop {
        let mut places = std::mem::take(&mut self.places);
        let stop = loop {
            match self.reserve_one(at, group, places.len()) {
                Ok(queues) => places.push(queues),
                Err(stop) => break stop,
            }
        };
        let is_cut = group.in_groups && self.contexts[at].account.full.is_some();
        if is_cut && !self.contexts[at].flying.is_empty() {
            self.give_back(at, &places);
            *group = Group::new(self, group.most);
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
            let op = self.contexts[at].fetched[i].op;
            self.release(at, &op, queues);
        }
    }

    /// Takes entries of all buffers for the next operation of a thread behind so many others.
    fn reserve_one(
        &mut self,
        at: usize,
        group: &mut Group,
        behind: usize,
    ) -> Result<[Option<u8>; 2], Stop> {
        if !group.takes_more() {
            return Err(Stop::Cause(Cause::Base));
        }
        let next = self.contexts[at].fetched.get(behind).copied();
        let Some(next) = next.filter(|next| next.ready <= self.cycle) else {
            return Err(Stop::Cause(self.starved(at)));
        };
        if !group.takes(&next.op) {
            return Err(Stop::Cause(Cause::Base));
        }
        let works = self.ports.works(&next.op);
        let queues = self.room(at, &next.op, works, group)?;
        group.add(&next.op);
        self.hold(at, &next.op, queues);
        Ok(queues)
    }

    /// Issue queues for an operation, if all buffers have room for it.
    fn room(
        &mut self,
        at: usize,
        op: &Op,
        works: Works,
        group: &Group,
    ) -> Result<[Option<u8>; 2], Stop> {
        let full = |core: &mut Self, buffer| Err(core.blocked(at, buffer));
        let needs_entry = !group.in_groups || group.ops == 0;
        let balanced = self.pools.window.exceeds(at, self.tables.balance_share);
        if needs_entry && (!self.pools.window.has_room(at) || balanced) {
            return full(self, Buffer::Window);
        }
        if op.kind == Kind::Load && !self.pools.loads.has_room(at) {
            return full(self, Buffer::Loads);
        }
        if op.kind == Kind::Store && !self.pools.stores.has_room(at) {
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

    /// Puts the next operation in line into the window.
    fn enter_next(&mut self, at: usize, queues: [Option<u8>; 2]) {
        if let Some(next) = self.contexts[at].fetched.pop_front() {
            let works = self.ports.works(&next.op);
            self.enter(at, &next.op, works, queues, next.mispredicted);
        }
    }

    fn enter(&mut self, at: usize, op: &Op, works: Works, queues: [Option<u8>; 2], wrong: bool) {
        let context = &mut self.contexts[at];
        let seq = context.next();
        let forwarded = context.forwarding(op);
        let missing = context.wait_for(op, seq, forwarded);
        for target in op.targets.into_iter().flatten() {
            context.writers[target.index()] = Some(seq);
        }
        if let (Kind::Store, Some(data)) = (op.kind, op.data) {
            context
                .stores
                .push_back(Store::new(seq, data.address, u64::from(data.bytes)));
        }
        context.waiting += 1;
        self.dispatched += 1;
        context.flying.push_back(Flying {
            op: *op,
            works,
            progress: if missing == 0 {
                Progress::Ready
            } else {
                Progress::Waiting
            },
            missing,
            dependents: Vec::new(),
            age: self.dispatched,
            issued: 0,
            origin: Origin::L1,
            queues,
            forwarded: forwarded.map(|(_, more)| more),
            mispredicted: wrong,
            ends_group: self.tables.group.is_none(),
            stalled: 0.0,
        });
        if missing == 0 {
            self.ready.push((self.dispatched, at, seq));
        }
    }

    /// Takes entries of all buffers but the group table.
    fn hold(&mut self, at: usize, op: &Op, queues: [Option<u8>; 2]) {
        if self.tables.group.is_none() {
            self.pools.window.take(at);
        }
        match op.kind {
            Kind::Load => self.pools.loads.take(at),
            Kind::Store => self.pools.stores.take(at),
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

    /// Gives back what [`Core::hold`] took of a machine with groups.
    fn release(&mut self, at: usize, op: &Op, queues: [Option<u8>; 2]) {
        match op.kind {
            Kind::Load => self.pools.loads.give(at),
            Kind::Store => self.pools.stores.give(at),
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

    fn close_group(&mut self, at: usize, group: &Group) {
        if group.in_groups && group.ops > 0 {
            self.pools.window.take(at);
            if let Some(last) = self.contexts[at].flying.back_mut() {
                last.ends_group = true;
            }
        }
    }

    /// Slots that operations of a wrong path take, as far as the window would hold them.
    fn throw_away(&mut self, at: usize, group: &Group) -> u32 {
        let room = self.pools.window.has_room(at);
        let held = self.pools.window.used(at);
        let context = &mut self.contexts[at];
        let arrived = context
            .fetch
            .wrong_since
            .is_some_and(|since| self.cycle > since + u64::from(self.tables.front.refill_cycles));
        let fits = held + context.fetch.wrong_ops < self.tables.window.entries;
        if self.contexts.len() < 2 || !arrived || !room || !fits || group.ops > 0 {
            return 0;
        }
        self.contexts[at].fetch.wrong_ops += group.most;
        group.most
    }

    /// Cause for which a thread has nothing to dispatch.
    fn starved(&self, at: usize) -> Cause {
        let fetch = &self.contexts[at].fetch;
        if fetch.wrong_since.is_some() || self.cycle <= fetch.refill {
            Cause::Branch
        } else if fetch.passed_over {
            Cause::CoRunner
        } else {
            Cause::Fetch
        }
    }

    /// Cause for which a buffer has no room for a thread.
    fn blocked(&mut self, at: usize, buffer: Buffer) -> Stop {
        self.contexts[at].account.full = Some(buffer);
        if self.pools.pool(buffer).is_crowded(at) {
            return Stop::Cause(Cause::CoRunner);
        }
        let context = &self.contexts[at];
        let unwritten = context.stores.front().is_some_and(|store| store.committed);
        if buffer == Buffer::Stores && unwritten {
            return Stop::Cause(Cause::Stores);
        }
        let Some(oldest) = context.flying.front() else {
            return Stop::Cause(Cause::Commit);
        };
        match oldest.progress {
            Progress::Waiting => Stop::Cause(Cause::Dependence),
            Progress::Ready => Stop::Cause(Cause::Ports),
            Progress::Issued if oldest.op.kind == Kind::Load => Stop::Oldest,
            Progress::Issued => Stop::Cause(self.behind(at, buffer)),
            Progress::Done => Stop::Cause(Cause::Commit),
        }
    }

    /// Cause for which a buffer is full while the oldest operation is executed: ports where much of
    /// what waits has its operands.
    fn behind(&self, at: usize, buffer: Buffer) -> Cause {
        let ready = self.ready.iter().filter(|(_, t, _)| *t == at).count();
        let held = self.pools.held(buffer, at) as usize;
        if buffer == Buffer::Issue && ready * 2 > held {
            Cause::Ports
        } else {
            Cause::Dependence
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
struct Group {
    in_groups: bool,
    most: u32,
    ops: u32,
    plain: u32,
    branches: u32,
    plain_slots: u32,
    branch_slots: u32,
}

impl Group {
    fn new(core: &Core<'_>, most: u32) -> Self {
        let group = core.tables.group;
        // In a mode with narrower groups, branch slots shrink along.
        let slots = group.map_or(most, |group| group.slots).max(1);
        let width = core.width.min(slots);
        let branches = group.map_or(most, |group| (group.branches * width / slots).max(1));
        Self {
            in_groups: group.is_some(),
            most,
            ops: 0,
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
        op.kind == Kind::Branch || self.plain < self.plain_slots
    }

    fn add(&mut self, op: &Op) {
        self.ops += 1;
        match op.kind {
            Kind::Branch => self.branches += 1,
            _ => self.plain += 1,
        }
    }
}

impl Store {
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

impl Context<'_> {
    /// The store from which a load gets its data, and the cycles that this takes beyond the L1D's.
    ///
    /// Which store that is is known from the trace: as if memory dependences were predicted
    /// without errors.
    fn forwarding(&self, op: &Op) -> Option<(u64, u32)> {
        let data = op.data.filter(|_| op.kind == Kind::Load)?;
        let bytes = u64::from(data.bytes);
        let store = self.store_before(data.address, bytes)?;
        let covers =
            store.address <= data.address && data.address + bytes <= store.address + store.bytes;
        Some((store.seq, if covers { 0 } else { PARTIAL_CYCLES }))
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
            if let Some(flying) = self.get(writer).filter(|f| f.progress != Progress::Done) {
                flying.dependents.push(seq);
                missing += 1;
            }
        }
        missing
    }
}
