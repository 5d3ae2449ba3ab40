//! A thread on a core: what it fetches, has in flight, and has yet to write.

use crate::memory::DataOrigin;
use crate::outcome::{ReferenceStack, SlotCause, ThreadOutcome};
use crate::placement::OpSource;
use consort_ops::predictor::BranchHistory;
use consort_ops::{Op, Register};
use std::collections::VecDeque;

use super::buffers::Buffer;
use super::ports::Works;

pub(crate) struct ThreadContext<'a> {
    /// Index among all threads of the run.
    pub(crate) thread: usize,
    pub(crate) feed: OpFeed<'a>,
    pub(crate) fetch: FetchState,
    pub(crate) history: BranchHistory,
    /// True if the next operation to fetch is fused with the one before it.
    pub(crate) joins_next: bool,
    /// Operations that were fetched, each with the cycle from which it can be dispatched.
    pub(crate) fetched: VecDeque<FetchedOp>,
    /// Of these, the ones that take a slot of their own.
    pub(crate) fetched_slots: u32,
    /// Operations in flight in program order; the first has the number `oldest`.
    pub(crate) flying: VecDeque<InFlightOp>,
    pub(crate) oldest: u64,
    /// The next to issue, of a thread that issues in order.
    pub(crate) unissued: u64,
    /// Operations between dispatch and issue.
    pub(crate) waiting: u32,
    /// Cycles in which it last fetched and dispatched.
    pub(crate) last_fetch: u64,
    pub(crate) last_dispatch: u64,
    pub(crate) writers: Box<[Option<u64>; Register::COUNT]>,
    /// Latest operations that were issued, with the cycles that each waited for it: they stand in
    /// for the operations of a wrong path, which no trace has.
    pub(crate) recent: VecDeque<(Op, u64)>,
    /// Operations of a wrong path that were dispatched.
    pub(crate) wrong_path: Vec<WrongPathOp>,
    pub(crate) stores: VecDeque<InFlightStore>,
    /// Lines in which stores gather before a cache that passes them on.
    pub(crate) gathered: VecDeque<u64>,
    pub(crate) account: ThreadAccount,
}

/// A program's operations over and over.
pub(crate) struct OpFeed<'a> {
    program: &'a dyn OpSource,
    ops: Box<dyn Iterator<Item = Op> + 'a>,
    ahead: Option<Op>,
}

impl<'a> OpFeed<'a> {
    /// Starts from the beginning; `None` if there are no operations.
    pub(crate) fn new(program: &'a dyn OpSource) -> Option<Self> {
        let mut ops = program.start();
        let ahead = ops.next();
        ahead.is_some().then_some(Self {
            program,
            ops,
            ahead,
        })
    }

    pub(crate) fn peek(&self) -> Option<&Op> {
        self.ahead.as_ref()
    }

    pub(crate) fn advance(&mut self) {
        self.ahead = self.ops.next();
        if self.ahead.is_none() {
            self.ops = self.program.start();
            self.ahead = self.ops.next();
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FetchState {
    /// Cycle from which it continues.
    pub(crate) resume: u64,
    /// True while a line is on its way to the L1I.
    pub(crate) waits: bool,
    /// Line that was fetched from last.
    pub(crate) line: Option<u64>,
    /// Cycle since which it fetches what will be thrown away.
    pub(crate) wrong_since: Option<u64>,
    /// Operations thrown away that took dispatch slots since.
    pub(crate) wrong_ops: u32,
    /// Cycle up to which the pipeline refills after a misprediction.
    pub(crate) refill: u64,
    /// True where another thread had its turn.
    pub(crate) passed_over: bool,
}

/// An operation between fetch and dispatch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchedOp {
    pub(crate) op: Op,
    pub(crate) ready: u64,
    pub(crate) mispredicted: bool,
    pub(crate) fused: FusedWith,
}

/// Neighbours with which an operation is fused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FusedWith {
    /// True if it shares slots and window entry with the operation before it.
    pub(crate) before: bool,
    /// True if the operation after it shares its own.
    pub(crate) after: bool,
    /// True if it is a computation and the branch on it.
    pub(crate) branch: bool,
}

/// Progress of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpProgress {
    /// Waits for operands.
    Waiting,
    /// Waits for a port.
    Ready,
    /// Is executed.
    Issued,
    /// Has its result.
    Done,
}

/// An operation between dispatch and commit.
#[derive(Debug)]
pub(crate) struct InFlightOp {
    pub(crate) op: Op,
    pub(crate) works: Works,
    pub(crate) progress: OpProgress,
    /// Operands that are not there yet.
    pub(crate) missing: u8,
    /// Numbers of operations that wait for this one.
    pub(crate) dependents: Vec<u64>,
    /// Order of dispatch on the core.
    pub(crate) age: u64,
    /// Cycles of dispatch and issue.
    pub(crate) dispatched: u64,
    pub(crate) issued: u64,
    /// Origin of its data, of a load.
    pub(crate) origin: DataOrigin,
    /// Issue queues that hold it.
    pub(crate) queues: [Option<u8>; 2],
    /// Cycles beyond the L1D's that it takes a store's data, of a load that does.
    pub(crate) forwarded: Option<u32>,
    pub(crate) mispredicted: bool,
    /// True for the last operation of a group, with which the group's entry of the window is given
    /// back; where none are grouped, true but for the first of two that share an entry.
    pub(crate) ends_group: bool,
    /// True for a computation and the branch on it, two instructions.
    pub(crate) is_two: bool,
    /// Cycles that the thread stood still for this one, the oldest, until its cause is known.
    pub(crate) stalled: f64,
}

/// Operations whose waits are kept for wrong paths: some turns of an inner loop.
const RECENT_OPS: usize = 64;

/// An operation of a wrong path between dispatch and the end of that path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrongPathOp {
    pub(crate) op: Op,
    /// Issue queues that hold it; none from `issued` on.
    pub(crate) queues: [Option<u8>; 2],
    /// Cycle in which it is issued.
    pub(crate) issued: u64,
    /// True if it has an entry of the window, for its group if there are groups.
    pub(crate) has_entry: bool,
}

/// A store from dispatch until it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlightStore {
    pub(crate) seq: u64,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) executed: bool,
    pub(crate) committed: bool,
    pub(crate) sent: bool,
    /// Cycle from which it is written.
    pub(crate) written: Option<u64>,
}

/// Accounts of a thread, and why it last stood still.
#[derive(Debug, Default)]
pub(crate) struct ThreadAccount {
    pub(crate) total: ThreadOutcome,
    pub(crate) stop: Option<DispatchStop>,
    /// Buffer that had no room.
    pub(crate) full: Option<Buffer>,
}

/// Reason why a thread dispatched no more in a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DispatchStop {
    /// For this.
    Cause(SlotCause),
    /// For a load that is under way, whose origin will be known.
    Oldest,
}

impl<'a> ThreadContext<'a> {
    /// A thread that has done nothing.
    pub(crate) fn new(thread: usize, feed: OpFeed<'a>, history: BranchHistory) -> Self {
        Self {
            thread,
            feed,
            fetch: FetchState::default(),
            history,
            joins_next: false,
            fetched: VecDeque::new(),
            fetched_slots: 0,
            flying: VecDeque::new(),
            oldest: 0,
            unissued: 0,
            waiting: 0,
            last_fetch: 0,
            last_dispatch: 0,
            writers: Box::new([None; Register::COUNT]),
            recent: VecDeque::with_capacity(RECENT_OPS),
            wrong_path: Vec::new(),
            stores: VecDeque::new(),
            gathered: VecDeque::new(),
            account: ThreadAccount::default(),
        }
    }

    /// The operation of a number, if it is in flight.
    pub(crate) fn get(&mut self, seq: u64) -> Option<&mut InFlightOp> {
        let at = seq.checked_sub(self.oldest)?;
        self.flying.get_mut(at as usize)
    }

    /// Keeps an operation that was issued now and its wait, as one that wrong paths repeat.
    pub(crate) fn note_issue(&mut self, op: Op, waited: u64) {
        if self.recent.len() == RECENT_OPS {
            self.recent.pop_front();
        }
        self.recent.push_back((op, waited));
    }

    /// The number that the next dispatched operation gets.
    pub(crate) fn next_number(&self) -> u64 {
        self.oldest + self.flying.len() as u64
    }

    /// The youngest store in flight that writes some of these bytes.
    pub(crate) fn store_before(&self, address: u64, bytes: u64) -> Option<&InFlightStore> {
        let overlaps =
            |s: &&InFlightStore| s.address < address + bytes && address < s.address + s.bytes;
        self.stores.iter().rev().find(overlaps)
    }

    /// Charges cycles to a cause, or to the oldest operation until its cause is known.
    pub(crate) fn charge(&mut self, stop: DispatchStop, cycles: f64) {
        match (stop, self.flying.front_mut()) {
            (DispatchStop::Oldest, Some(oldest)) => oldest.stalled += cycles,
            (DispatchStop::Oldest, None) => self.stack().add(SlotCause::Dependence, cycles),
            (DispatchStop::Cause(cause), _) => self.stack().add(cause, cycles),
        }
    }

    /// Charges what the oldest operation held up now that its cause is known.
    pub(crate) fn charge_stall(&mut self, cycles: f64, origin: DataOrigin) {
        let cause = match origin {
            DataOrigin::L1 => SlotCause::Dependence,
            DataOrigin::L2 => SlotCause::L2,
            DataOrigin::Llc => SlotCause::Llc,
            DataOrigin::Memory => SlotCause::Memory,
        };
        self.stack().add(cause, cycles);
    }

    fn stack(&mut self) -> &mut ReferenceStack {
        &mut self.account.total.stack
    }
}
