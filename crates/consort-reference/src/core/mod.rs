//! A core, cycle by cycle: fetch, dispatch, issue, commit of all its threads.

mod back_end;
pub(crate) mod buffers;
mod context;
mod dispatch;
mod fetch;
mod ports;

use crate::memory::cache::SetAssociativeCache;
use crate::memory::{DataOrigin, LineReply, MemoryHierarchy, Waiter, passes_stores};
use crate::outcome::ThreadOutcome;
use crate::time::CoreClock;
use buffers::{Buffer, BufferPools};
use consort_ops::predictor::{Predictor, PredictorScheme};
use consort_sim::machine::PredictorSpec;
use consort_sim::machine::detail::{BufferSharing, PredictorKind};
use consort_sim::machine::tables::CoreTables;
use consort_sim::machine::{CoreSpec, PipelineSpec, Scope};
pub(crate) use context::OpFeed;
use context::{OpProgress, ThreadContext};
use ports::Ports;
use rand_pcg::Pcg64;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The predictor that a machine describes; where it does not say, 4096 targets and a return stack
/// of 16.
fn predictor(spec: &PredictorSpec) -> Predictor {
    let scheme = match spec.kind.unwrap_or_default() {
        PredictorKind::Bimodal => PredictorScheme::Bimodal,
        PredictorKind::Gshare => PredictorScheme::Gshare,
        PredictorKind::Tage => PredictorScheme::Tagged,
    };
    let (targets, returns) = (
        spec.targets.unwrap_or(4096),
        spec.return_stack.unwrap_or(16),
    );
    let predictor = Predictor::new(scheme, spec.size_kib, targets, returns);
    match spec.taken_bubble_cycles {
        Some(_) => predictor.with_computed_targets(),
        None => predictor,
    }
}

/// A core and its threads.
pub(crate) struct ReferenceCore<'a> {
    pub(crate) clock: CoreClock,
    /// The cycle to come.
    pub(crate) cycle: u64,
    tables: CoreTables,
    in_order: bool,
    passes_stores: bool,
    /// Cycles after which a load that has no data yet has missed the L2.
    l2_cycles: u64,
    line_bytes: u64,
    gathered_lines: usize,
    /// Operations per cycle of one thread, alone and with those that run.
    width_alone: u32,
    width: u32,
    contexts: Vec<ThreadContext<'a>>,
    pools: BufferPools,
    ports: Ports,
    /// Operations that wait for a port, oldest first: age, thread, number.
    ready: Vec<(u64, usize, u64)>,
    /// Memory for the issue queues of what is about to be dispatched.
    places: Vec<[Option<u8>; 2]>,
    /// Operations in execution: cycle of the result, thread, number.
    results: BinaryHeap<Reverse<(u64, usize, u64)>>,
    predictors: Vec<Predictor>,
    /// Cycles without fetch behind a taken branch whose target is computed.
    bubble: u64,
    op_caches: Vec<SetAssociativeCache>,
    dispatched: u64,
}

impl<'a> ReferenceCore<'a> {
    /// A core whose CPUs run these threads, by their indices among all.
    pub(crate) fn new(
        spec: &CoreSpec,
        line_bytes: u32,
        threads: Vec<(usize, OpFeed<'a>)>,
        random: &Pcg64,
    ) -> Self {
        let count = threads.len();
        let tables = CoreTables::new(spec).with_threads(count as u32);
        let modes = || spec.smt.iter();
        let mode = modes()
            .find(|mode| mode.ways as usize >= count)
            .or(spec.smt.last());
        let width = |width: Option<f64>| width.unwrap_or(1.0).round().max(1.0) as u32;
        let own = |scope| if scope == Scope::Pu { count } else { 1 };
        let predictor = predictor(&spec.branch_predictor);
        let width_here = width(mode.map(|mode| mode.thread_dispatch_width));
        Self {
            clock: CoreClock::new(spec.frequency_ghz),
            cycle: 0,
            in_order: spec.pipeline == PipelineSpec::InOrder,
            passes_stores: passes_stores(spec),
            line_bytes: u64::from(line_bytes),
            l2_cycles: spec
                .l2
                .as_ref()
                .map_or(u64::MAX, |l2| l2.latency_cycles.ceil() as u64),
            gathered_lines: spec.l1d.gathered_lines.unwrap_or(1).max(1) as usize,
            width_alone: width(modes().next().map(|mode| mode.thread_dispatch_width)),
            width: width_here,
            contexts: threads
                .into_iter()
                .map(|(t, feed)| ThreadContext::new(t, feed, predictor.new_history()))
                .collect(),
            pools: BufferPools::new(&tables, count, width_here),
            ports: Ports::new(&tables, count),
            ready: Vec::new(),
            places: Vec::new(),
            results: BinaryHeap::new(),
            bubble: u64::from(spec.branch_predictor.taken_bubble_cycles.unwrap_or(0)),
            predictors: vec![predictor; own(spec.branch_predictor.per)],
            op_caches: op_caches(&tables, count, random),
            dispatched: 0,
            tables,
        }
    }

    /// Runs one cycle, and those after it in which nothing can happen before `memory` does.
    pub(crate) fn step(&mut self, memory: &mut MemoryHierarchy) {
        let finished = self.finish();
        let committed = self.commit();
        let written = self.write(memory);
        let issued = self.issue(memory);
        self.issue_wrong_paths();
        let dispatched = self.dispatch();
        let fetched = self.fetch(memory);
        let idle = !(finished || committed || written || issued || dispatched || fetched);
        let next = if idle {
            self.next_active_cycle(memory)
        } else {
            self.cycle + 1
        };
        self.account_cycles(next - self.cycle);
        self.cycle = next;
    }

    /// Takes what memory has for one of its threads.
    pub(crate) fn accept_reply(&mut self, answer: &LineReply) {
        let cycle = self.clock.cycle(answer.time);
        match answer.waiter {
            Waiter::Load { thread, seq } => {
                let Some(at) = self.context_index(thread) else {
                    return;
                };
                self.results.push(Reverse((cycle, at, seq)));
                self.contexts[at].note_origin(seq, answer.origin);
            }
            Waiter::Fetch { thread } => {
                let Some(at) = self.context_index(thread) else {
                    return;
                };
                self.contexts[at].fetch.waits = false;
                let resume = &mut self.contexts[at].fetch.resume;
                *resume = (*resume).max(cycle);
            }
            Waiter::Store { thread, seq } => {
                let Some(at) = self.context_index(thread) else {
                    return;
                };
                let mut stores = self.contexts[at].stores.iter_mut();
                if let Some(store) = stores.find(|store| store.seq == seq) {
                    store.written = Some(cycle);
                }
            }
            Waiter::None | Waiter::Level(_) => {}
        }
    }

    /// Accounts of its threads, by their indices among all.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = (usize, &ThreadOutcome)> {
        self.contexts.iter().map(|c| (c.thread, &c.account.total))
    }

    fn context_index(&self, thread: usize) -> Option<usize> {
        self.contexts.iter().position(|c| c.thread == thread)
    }

    /// Marks operations that have their results, and wakes their dependents.
    fn finish(&mut self) -> bool {
        let mut any = false;
        while let Some(&Reverse((cycle, at, seq))) = self.results.peek() {
            if cycle > self.cycle {
                break;
            }
            self.results.pop();
            self.finish_one(at, seq);
            any = true;
        }
        any
    }

    fn finish_one(&mut self, at: usize, seq: u64) {
        let now = self.cycle;
        let refill = u64::from(self.tables.front.refill_cycles);
        let context = &mut self.contexts[at];
        let Some(flying) = context.get(seq) else {
            return;
        };
        flying.progress = OpProgress::Done;
        let (stalled, origin) = (flying.stalled, flying.origin);
        let dependents = std::mem::take(&mut flying.dependents);
        let ends_wrong_path = flying.mispredicted;
        if ends_wrong_path {
            context.fetch.wrong_since = None;
            context.fetch.wrong_ops = 0;
            context.fetch.resume = now;
            context.fetch.refill = now + refill;
        }
        context.charge_stall(stalled, origin);
        if let Some(store) = context.stores.iter_mut().find(|store| store.seq == seq) {
            store.executed = true;
        }
        for dependent in dependents {
            self.note_operand(at, dependent);
        }
        if ends_wrong_path {
            self.end_wrong_path(at);
        }
    }

    /// Notes that one operand of an operation is there.
    fn note_operand(&mut self, at: usize, seq: u64) {
        let Some(flying) = self.contexts[at].get(seq) else {
            return;
        };
        flying.missing -= 1;
        if flying.missing == 0 {
            flying.progress = OpProgress::Ready;
            let key = (flying.age, at, seq);
            let place = self.ready.partition_point(|ready| *ready < key);
            self.ready.insert(place, key);
        }
    }

    /// The first cycle in which something can happen.
    fn next_active_cycle(&self, memory: &MemoryHierarchy) -> u64 {
        let result = self.results.peek().map(|Reverse((cycle, ..))| *cycle);
        let outside = memory.next_event_time().map(|time| self.clock.cycle(time));
        let own = self.contexts.iter().flat_map(|c| c.wake_cycles(self.cycle));
        let next = result.into_iter().chain(outside).chain(own).min();
        let at_once = !self.ready.is_empty()
            || (self.in_order && self.contexts.iter().any(ThreadContext::can_issue_next));
        match next {
            Some(next) if !at_once => next.max(self.cycle + 1),
            _ => self.cycle + 1,
        }
    }

    /// Accounts for cycles that were all like this one.
    fn account_cycles(&mut self, cycles: u64) {
        for (at, context) in self.contexts.iter_mut().enumerate() {
            if let Some(stop) = context.account.stop.filter(|_| cycles > 1) {
                context.charge(stop, (cycles - 1) as f64);
            }
            let full = context.account.full;
            let total = &mut context.account.total;
            total.cycles += cycles;
            if let Some(buffer) = full {
                total.full[buffer as usize] += cycles;
            }
            for buffer in Buffer::ALL {
                total.held[buffer as usize] +=
                    u64::from(self.pools.used_entries(buffer, at)) * cycles;
            }
        }
    }
}

fn op_caches(tables: &CoreTables, threads: usize, random: &Pcg64) -> Vec<SetAssociativeCache> {
    let Some(spec) = tables.front.op_cache else {
        return Vec::new();
    };
    let all = u64::from(spec.ops / spec.line_ops.max(1));
    let (parts, lines) = match spec.sharing {
        BufferSharing::Shared => (1, all),
        BufferSharing::Private => (threads, all),
        BufferSharing::Partitioned => (threads, all / threads as u64),
        BufferSharing::Halved => (threads.min(2), all / threads.min(2) as u64),
    };
    let cache = || SetAssociativeCache::new(lines, spec.ways, Default::default(), random.clone());
    (0..parts).map(|_| cache()).collect()
}

impl ThreadContext<'_> {
    fn note_origin(&mut self, seq: u64, origin: DataOrigin) {
        if let Some(flying) = self.get(seq) {
            flying.origin = origin;
        }
    }

    /// Cycles after this one in which it may do something by itself.
    fn wake_cycles(&self, now: u64) -> impl Iterator<Item = u64> {
        let fetched = self.fetched.front().map(|fetched| fetched.ready);
        let written = self.stores.front().and_then(|store| store.written);
        let resume = Some(self.fetch.resume);
        let wrong = self.wrong_path.iter().map(|wrong| wrong.issued);
        let times = [fetched, written, resume]
            .into_iter()
            .flatten()
            .chain(wrong);
        times.filter(move |&time| time > now)
    }

    /// True if its next operation in program order waits for a port alone.
    fn can_issue_next(&self) -> bool {
        let at = (self.unissued - self.oldest) as usize;
        self.flying
            .get(at)
            .is_some_and(|flying| flying.missing == 0)
    }
}
