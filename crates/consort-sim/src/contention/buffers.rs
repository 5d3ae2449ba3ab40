//! A thread's window: the entries of a core's buffers that it takes, alone and under SMT.
//!
//! A thread may have in flight as much as the smallest window that any buffer sustains: reorder
//! buffer or group table, issue queues, load and store queues, registers. An instruction holds an
//! entry of an issue queue for the part of its time in the window in which it waits for operands,
//! entries of the other buffers for all of it (Little's law).
//!
//! Under SMT a shared buffer is divided like a cache, by insertion pressure. A thread wants as many
//! entries as it inserts during the time that they stay:
//!
//! - While its front end limits it, the smallest window that sustains its rate.
//! - While ports or a chain limit it, all that it may have, because dispatch continues as long as
//!   there is room. How many entries of a scheduler that takes depends on how many of its
//!   operations wait, not on how many it executes: a chain fills a scheduler that a divider with the
//!   same throughput leaves empty.
//! - While it executes a wrong path, all that it may have.
//! - While it waits for memory, its fair share of the dispatch slots for as long as the wait lasts,
//!   which is far more than the buffer has. So a thread that waits clogs the window for its
//!   co-runners, and two that wait do each other no harm beyond the overlap of their misses.

use super::core_model::CoreModel;
use super::needs::InstructionNeeds;
use super::types::Demand;
use crate::machine::detail::{BufferSharing, RegistersSpec, WorkKind};
use crate::machine::{CoreSpec, PipelineSpec};
use crate::math::{exp, log2, pow};
use crate::phase::Phase;
use crate::program::{ILP_WINDOWS, PhaseSpec};
use std::sync::Arc;

/// Buffers of a core at most; machines have fewer.
pub(crate) const MOST_BUFFERS: usize = 12;
/// Position of the first issue queue among them.
pub(crate) const FIRST_QUEUE: usize = 5;

/// A thread's use of one buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BufferUse {
    /// Entries that the thread can have.
    pub(crate) own: f64,
    /// Entries of the pool, where co-runners take from the same; 0 elsewhere.
    pub(crate) pool: f64,
    /// Entries per instruction in the window.
    pub(crate) per_instruction: f64,
    /// The same while every operation waits for a port.
    pub(crate) per_piled: f64,
    /// Entries times cycles that an instruction takes before it can be issued, beyond the first.
    pub(crate) passing: f64,
}

/// A thread's use of every buffer, in the same order for all threads of a core type.
pub(crate) type Buffers = [BufferUse; MOST_BUFFERS];

/// Instructions in flight that its own entries of all buffers sustain, given the instructions per
/// cycle that a window of some size sustains. Of issue queues, operations that cannot be issued yet
/// take entries as well, and the more the faster they pass.
fn window(buffers: &Buffers, rate: impl Fn(f64) -> f64) -> f64 {
    let sustained = |rate: f64| {
        let each = buffers.iter();
        let each = each.map(|buffer| buffer.window(buffer.own - rate * buffer.passing));
        each.fold(f64::INFINITY, f64::min).max(1.0)
    };
    // Larger windows are faster and leave less room, so that each bound gives another one.
    let (mut least, mut most) = (1.0, sustained(0.0));
    for _ in 0..2 {
        least = sustained(rate(most)).max(least);
        most = sustained(rate(least)).min(most);
    }
    0.5 * (least + most)
}

impl BufferUse {
    /// Instructions in flight that so many entries sustain.
    pub(crate) fn window(&self, entries: f64) -> f64 {
        if self.per_instruction > 0.0 {
            entries / self.per_instruction
        } else {
            f64::INFINITY
        }
    }
}

/// Entries of one buffer and their division.
struct BufferEntries {
    entries: f64,
    sharing: BufferSharing,
    reserve: f64,
    /// Share of a shared pool that one thread may hold while others run.
    most: f64,
}

impl BufferEntries {
    fn buffer_use(&self, on_core: f64, per_instruction: f64) -> BufferUse {
        let alone = on_core < 2.0;
        let (own, pool) = match self.sharing {
            BufferSharing::Private => (self.entries, 0.0),
            BufferSharing::Partitioned => (self.entries / on_core, 0.0),
            BufferSharing::Halved if alone => (self.entries, 0.0),
            // Half of the threads share a half; each is given its part.
            BufferSharing::Halved => (self.entries / 2.0 / (on_core / 2.0).ceil(), 0.0),
            BufferSharing::Shared if alone => (self.entries, 0.0),
            BufferSharing::Shared => {
                let own = self.entries - self.reserve * (on_core - 1.0);
                (own.min(self.most * self.entries), self.entries)
            }
        };
        BufferUse {
            own: own.max(1.0),
            pool,
            per_instruction,
            per_piled: per_instruction,
            passing: 0.0,
        }
    }
}

/// Returns the use of a core's buffers by a phase's window with so many threads, itself included.
pub(super) fn buffers(
    model: &CoreModel,
    phase: &PhaseSpec,
    needs: &InstructionNeeds,
    on_core: f64,
) -> Buffers {
    let tables = &model.tables;
    let mut all = Buffers::default();
    let balanced = |entries: BufferEntries| BufferEntries {
        most: tables.balance_share,
        ..entries
    };
    let per_entry = match tables.group {
        Some(_) => needs.dispatch_turns,
        None => needs.slots,
    };
    let window = BufferEntries::from_spec(&tables.window_in_mode(needs.width));
    all[0] = balanced(window).buffer_use(on_core, per_entry);
    let of = |work: WorkKind| needs.work_operations(work);
    let (loads, stores) = (of(WorkKind::Load), of(WorkKind::Store));
    all[1] = balanced(BufferEntries::from_spec(&tables.load_queue)).buffer_use(on_core, loads);
    all[2] = balanced(BufferEntries::from_spec(&tables.store_queue)).buffer_use(on_core, stores);
    let vector_loads = loads * phase.vector_accesses();
    let int = of(WorkKind::Integer) + needs.joined + of(WorkKind::Multiply) + loads - vector_loads;
    let computing = [WorkKind::FpAdd, WorkKind::Vector, WorkKind::VectorMove].map(of);
    let vector = computing.into_iter().sum::<f64>() + vector_loads;
    let registers = |spec| balanced(registers(spec, on_core));
    all[3] = registers(&tables.int_registers).buffer_use(on_core, int);
    all[4] = registers(&tables.vector_registers).buffer_use(on_core, vector);
    let queues = tables.issue.iter().zip(&mut all[FIRST_QUEUE..]);
    for (queue, buffer) in queues {
        let (mut per_instruction, mut per_piled) = (0.0, 0.0);
        for &work in &queue.holds {
            let sharers = tables.issue.iter().filter(|q| q.holds.contains(&work));
            let held = entries(needs, work) / sharers.count().max(1) as f64;
            per_instruction += held * waiting_share(phase, work);
            per_piled += held;
        }
        let pool = BufferEntries {
            entries: f64::from(queue.entries),
            sharing: queue.sharing,
            reserve: f64::from(queue.reserve),
            most: tables.balance_share,
        };
        *buffer = BufferUse {
            per_piled,
            passing: per_piled * f64::from(tables.front.issue_delay - 1),
            ..pool.buffer_use(on_core, per_instruction)
        };
    }
    all
}

impl BufferEntries {
    fn from_spec(spec: &crate::machine::detail::BufferSpec) -> Self {
        Self {
            entries: f64::from(spec.entries),
            sharing: spec.sharing,
            reserve: f64::from(spec.reserve),
            most: 1.0,
        }
    }
}

/// Registers beyond the ones that hold the threads' states.
fn registers(spec: &RegistersSpec, on_core: f64) -> BufferEntries {
    let states = match spec.sharing {
        BufferSharing::Private => 1.0,
        _ => on_core,
    };
    BufferEntries {
        entries: f64::from(spec.entries) - f64::from(spec.architected) * states,
        sharing: spec.sharing,
        reserve: 0.0,
        most: 1.0,
    }
}

/// Floating-point operations per instruction in the window that wait for operands in a scheduler.
pub(super) fn fp_waiting(model: &CoreModel, phase: &PhaseSpec, needs: &InstructionNeeds) -> f64 {
    let mut issue = model.tables.issue.iter();
    let Some(scheduler) = issue.find(|queue| queue.holds.contains(&WorkKind::FpAdd)) else {
        return 0.0;
    };
    let held = FP.iter().filter(|work| scheduler.holds.contains(work));
    held.map(|&work| entries(needs, work)).sum::<f64>() * phase.fp_scheduler().waiting
}

/// Kinds of work that pass through a floating-point scheduler, if the core has one of its own.
const FP: [WorkKind; 4] = [
    WorkKind::FpAdd,
    WorkKind::Vector,
    WorkKind::VectorLoad,
    WorkKind::VectorStore,
];

/// Share of a work's operations in the window that wait for operands, 0 to 1.
fn waiting_share(phase: &PhaseSpec, work: WorkKind) -> f64 {
    let fp = phase.fp_scheduler().waiting;
    if FP.contains(&work) {
        return fp;
    }
    let (mix, vector) = (&phase.mix, phase.vector_accesses());
    let passing = mix.fp + mix.vector + (mix.load + mix.store) * vector;
    let others = (phase.waiting_share() - passing * fp) / (1.0 - passing).max(f64::MIN_POSITIVE);
    others.clamp(0.0, 1.0)
}

/// Entries of queues that a work's operations take per instruction; the data of a store waits in
/// the same entry as its address.
fn entries(needs: &InstructionNeeds, work: WorkKind) -> f64 {
    match work {
        WorkKind::StoreData => 0.0,
        work => needs.work_operations(work),
    }
}

/// A thread's window, as its core's buffers set it.
#[derive(Clone, Debug)]
pub(crate) struct WindowModel {
    pub(super) phase: Arc<Phase>,
    intensity: f64,
    /// Use of each buffer.
    pub(crate) buffers: Buffers,
    /// True if co-runners can clog it.
    pub(crate) is_shared: bool,
    /// Floating-point operations per instruction in it that wait in a scheduler.
    pub(crate) fp_waiting: f64,
    /// Size with the core to itself, instructions.
    pub(crate) whole: f64,
    whole_parallelism: f64,
    whole_position: WindowPosition,
    /// Size if co-runners take nothing of shared buffers, instructions.
    pub(crate) alone: f64,
    alone_parallelism: f64,
    alone_position: WindowPosition,
    alone_misses: f64,
    /// Most instructions in flight behind long misses; infinite if the core does not hold threads
    /// back that wait for memory.
    pub(crate) waiting: f64,
}

impl WindowModel {
    /// The window on a core with these buffers, given its use of them with the core to itself and
    /// the instructions per cycle that a window of some size sustains.
    pub(super) fn new(
        demand: &Demand,
        core: &CoreSpec,
        (buffers, fp_waiting): (Buffers, f64),
        whole: &Buffers,
        rate: impl Fn(f64) -> f64,
    ) -> Self {
        let phase = &demand.phase.spec;
        let whole = window(whole, &rate);
        let out_of_order = core.pipeline == PipelineSpec::OutOfOrder;
        let alone = if out_of_order {
            window(&buffers, &rate).min(whole)
        } else {
            phase.ilp.use_distance
        };
        Self {
            phase: Arc::clone(&demand.phase),
            intensity: demand.intensity,
            buffers,
            is_shared: out_of_order && buffers.iter().any(|buffer| buffer.pool > 0.0),
            fp_waiting,
            whole,
            whole_parallelism: phase.ilp.parallelism_at(whole) / demand.intensity,
            whole_position: WindowPosition::new(whole),
            alone,
            alone_parallelism: phase.ilp.parallelism_at(alone) / demand.intensity,
            alone_position: WindowPosition::new(alone),
            alone_misses: phase.mlp.overlap_at(alone),
            waiting: f64::INFINITY,
        }
    }

    /// The window on a core that dispatches nothing for a thread with so many misses of the L2 on
    /// their way, of lines that take `long` of its long misses each. Until the last of them is known
    /// to miss, after `latency` cycles, dispatch continues at `width` operations per cycle.
    pub(super) fn with_balance(mut self, misses: u32, long: f64, latency: f64, width: u32) -> Self {
        let before = (self.phase.spec.mlp).window_for(f64::from(misses) / long, self.alone);
        self.waiting = before + latency * f64::from(width);
        self.alone_misses = self.phase.spec.mlp.overlap_at(self.alone.min(self.waiting));
        self
    }

    /// Parallelism of a window, instructions per cycle of mean latency 1.
    pub(super) fn parallelism(&self, window: f64) -> f64 {
        // The two common sizes are kept, because this takes a power.
        if window == self.whole {
            self.whole_parallelism
        } else if window == self.alone {
            self.alone_parallelism
        } else {
            self.phase.spec.ilp.parallelism_at(window) / self.intensity
        }
    }

    /// Position of a window among those for which chains are measured.
    pub(super) fn position(&self, window: f64) -> WindowPosition {
        // This takes a logarithm.
        if window == self.whole {
            self.whole_position
        } else if window == self.alone {
            self.alone_position
        } else {
            WindowPosition::new(window)
        }
    }

    /// Long misses that are in a window at once, with lines of 64 bytes and however many the core
    /// can have outstanding.
    pub(super) fn parallel_misses(&self, window: f64) -> f64 {
        if window == self.alone {
            self.alone_misses
        } else {
            self.phase.spec.mlp.overlap_at(window.min(self.waiting))
        }
    }

    /// Instructions in it, of at most `alone`, if the back end takes `slower` times as long for each
    /// as the front end: as in a queue of that length with arrivals and departures at random
    /// (M/M/1/K; Kleinrock, "Queueing Systems", volume 1, section 3.6), as far as it is full again
    /// before the next of so many mispredicted branches per instruction empties it.
    pub(super) fn filled(&self, slower: f64, mispredicted: f64) -> f64 {
        let (room, apart) = (self.alone, slower - 1.0);
        // While `w` more instructions come than leave, `w·s/(s − 1)` are dispatched; what arrives and
        // leaves at the same rate fills a queue of w within w².
        let filling = room * slower.max(1.0) / (apart.max(0.0) + 1.0 / room);
        let full = exp(-mispredicted * filling);
        if apart.abs() * room < 1e-3 {
            return full * 0.5 * room;
        }
        // Powers of the inverse where the queue is full, because those of a large number overflow.
        let at_end = |ratio: f64| {
            let rest = pow(ratio, room + 1.0);
            ratio / (1.0 - ratio) - (room + 1.0) * rest / (1.0 - rest)
        };
        full * if slower < 1.0 {
            at_end(slower)
        } else {
            room - at_end(1.0 / slower)
        }
    }
}

/// Position of a window among [`ILP_WINDOWS`], behind which there is one of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WindowPosition {
    /// The smallest of them that is as large, or the largest.
    pub(super) next: usize,
    /// Its distance from the one before over the distance between both, by logarithm, 0 to 1.
    pub(super) share: f64,
}

impl WindowPosition {
    pub(super) fn new(window: f64) -> Self {
        let most = ILP_WINDOWS.len() - 1;
        let next = ILP_WINDOWS.partition_point(|&size| size < window).min(most);
        let before = next
            .checked_sub(1)
            .map_or(1.0, |before| ILP_WINDOWS[before]);
        let share = log2(window / before) / log2(ILP_WINDOWS[next] / before);
        Self {
            next,
            share: share.clamp(0.0, 1.0),
        }
    }
}

/// A thread's pressure on a shared buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pressure {
    /// Entries without which it computes more slowly.
    pub(crate) needed: f64,
    /// Entries that it wants while it computes.
    pub(crate) computing: f64,
    /// Entries that it would insert during a wait for memory.
    pub(crate) waiting: f64,
    /// Share of time that it waits for memory, 0 to 1.
    pub(crate) waits: f64,
}

impl Pressure {
    /// The same in entries of a buffer, for a thread that waits for ports for the share `piled` of
    /// the time in which it computes, at so many instructions per cycle.
    pub(crate) fn for_buffer(self, buffer: &BufferUse, piled: f64, rate: f64) -> Self {
        let (waits, piles) = (buffer.per_instruction, buffer.per_piled);
        let passing = rate * buffer.passing;
        Self {
            needed: self.needed * waits + passing,
            computing: self.computing * (waits + piled * (piles - waits)) + passing,
            waiting: self.waiting * waits,
            waits: self.waits,
        }
    }

    /// Entries that it takes from others, on average over time.
    pub(crate) fn entries(self) -> f64 {
        (1.0 - self.waits) * self.computing + self.waits * self.waiting
    }

    /// Entries that it asserts against others whose pressure comes for the share `waiting` from
    /// waits: threads that compute take entries from each other in turn, but from a thread that
    /// waits and frees nothing, none gets more than it needs.
    fn asserted(self, waiting: f64) -> f64 {
        let computing = self.computing - waiting * (self.computing - self.needed).max(0.0);
        (1.0 - self.waits) * computing + self.waits * self.waiting
    }
}

/// Entries that thread `i` has of a shared buffer of `entries`.
pub(crate) fn window_share(entries: f64, pressures: &[Pressure], i: usize) -> f64 {
    let all: f64 = pressures.iter().map(|p| p.entries()).sum();
    let waiting: f64 = pressures.iter().map(|p| p.waits * p.waiting).sum();
    let asserted = |p: &Pressure| {
        let others = (all - p.entries()).max(f64::MIN_POSITIVE);
        let waiting = (waiting - p.waits * p.waiting).max(0.0);
        p.asserted((waiting / others).min(1.0))
    };
    let all: f64 = pressures.iter().map(asserted).sum();
    let own = asserted(&pressures[i]);
    if all <= entries {
        // What no thread wants is there for all.
        return own + entries - all;
    }
    // Every thread can insert at least the instruction that it dispatches next.
    (entries * own / all).max(1.0)
}

/// A thread's claim on a shared issue queue.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct QueueClaim {
    /// Entries that it may have.
    pub(crate) most: f64,
    /// Entries that it holds if there is room for all.
    pub(crate) held: f64,
    /// Entries without which it is slower.
    pub(crate) needed: f64,
    /// Of these, entries of operations that could not be issued yet.
    pub(crate) passing: f64,
    /// Operations that it inserts per cycle while it can dispatch.
    pub(crate) inserts: f64,
    /// Entries that it frees per cycle, on average over time.
    pub(crate) frees: f64,
}

/// Entries that thread `k` has of a shared issue queue of `entries`.
///
/// A thread whose operations wait holds what it may have, however fast its co-runners free theirs.
/// They have the rest, and once the queue is full at least as many insertions as that thread,
/// because threads dispatch in turn: with `r` entries freed by it per cycle, a thread that inserts
/// `d` per cycle and holds `n` for it has `n·r/d` of them (Little's law).
pub(crate) fn queue_share(entries: f64, claims: &[QueueClaim], k: usize) -> f64 {
    let share = |k: usize| {
        let (mut held, mut freed) = (0.0, 0.0);
        for (_, other) in claims.iter().enumerate().filter(|&(j, _)| j != k) {
            held += other.held;
            freed += other.held * other.frees;
        }
        let (own, freed) = (&claims[k], freed / held.max(f64::MIN_POSITIVE));
        let turns = (freed / own.inserts.max(f64::MIN_POSITIVE)).min(1.0);
        (entries - held).max(own.needed * turns)
    };
    let used: f64 = (0..claims.len())
        .map(|j| share(j).min(claims[j].held))
        .sum();
    share(k) * (entries / used.max(entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn computing(entries: f64) -> Pressure {
        Pressure {
            needed: entries,
            computing: entries,
            ..Pressure::default()
        }
    }

    fn chaser() -> Pressure {
        Pressure {
            needed: 128.0,
            computing: 128.0,
            waiting: 400.0,
            waits: 0.95,
        }
    }

    #[test]
    fn single_thread_has_whole_window() {
        assert_eq!(window_share(128.0, &[computing(20.0)], 0), 128.0);
        assert_eq!(window_share(128.0, &[chaser()], 0), 128.0);
    }

    #[test]
    fn waiting_thread_clogs_window() {
        let both = [computing(25.0), chaser()];
        assert!(window_share(128.0, &both, 0) < 10.0);
        assert!(window_share(128.0, &both, 1) > 100.0);
    }

    #[test]
    fn equal_pressures_share_equally() {
        assert_eq!(window_share(128.0, &[chaser(), chaser()], 0), 64.0);
    }

    #[test]
    fn share_is_continuous_at_full_window() {
        let just = |x: f64| window_share(128.0, &[computing(64.0), computing(x)], 0);
        assert!((just(64.0 - 1e-9) - just(64.0 + 1e-9)).abs() < 1e-6);
    }
}
