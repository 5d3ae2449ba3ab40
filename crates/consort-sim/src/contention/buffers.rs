//! A thread's window: the entries of a core's buffers that it takes, alone and under SMT.
//!
//! A thread may have in flight as much as the smallest window that any buffer sustains: reorder
//! buffer or group table, issue queues, load and store queues, registers. An instruction holds an
//! entry of an issue queue for the part of its time in the window in which it waits for operands,
//! entries of the other buffers for all of it (Little's law).
//!
//! Under SMT a shared buffer is divided like a cache, by insertion pressure. A thread wants as many
//! entries as it inserts during the time that they stay: while it computes, the smallest window
//! that sustains its rate; while it waits for memory, its fair share of the dispatch slots for as
//! long as the wait lasts, which is far more than the buffer has. So a thread that waits clogs the
//! window for its co-runners, and two that wait do each other no harm beyond the overlap of their
//! misses.

use super::core_model::CoreModel;
use super::needs::InstructionNeeds;
use super::types::Demand;
use crate::machine::detail::{BufferSharing, RegistersSpec, WorkKind};
use crate::machine::{CoreSpec, PipelineSpec};
use crate::math::log2;
use crate::program::{ILP_WINDOWS, PhaseSpec};

/// Buffers of a core at most; machines have fewer.
pub(crate) const MOST_BUFFERS: usize = 12;

/// A thread's use of one buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BufferUse {
    /// Entries that the thread can have.
    pub(crate) own: f64,
    /// Entries of the pool, where co-runners take from the same; 0 elsewhere.
    pub(crate) pool: f64,
    /// Entries per instruction in the window.
    pub(crate) per_instruction: f64,
}

/// A thread's use of every buffer, in the same order for all threads of a core type.
pub(crate) type Buffers = [BufferUse; MOST_BUFFERS];

/// Instructions in flight that its own entries of all buffers sustain.
fn window(buffers: &Buffers) -> f64 {
    let sustained = buffers.iter().map(|buffer| buffer.window(buffer.own));
    sustained.fold(f64::INFINITY, f64::min).max(1.0)
}

/// Instructions in flight that the buffers sustain which it shares with no co-runner.
fn own_window(buffers: &Buffers) -> f64 {
    let own = buffers.iter().filter(|buffer| buffer.pool <= 0.0);
    let sustained = own.map(|buffer| buffer.window(buffer.own));
    sustained.fold(f64::INFINITY, f64::min).max(1.0)
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
        }
    }
}

/// Returns the use of a core's buffers by a phase's window with so many threads, itself included.
fn buffers(
    model: &CoreModel,
    phase: &PhaseSpec,
    needs: &InstructionNeeds,
    on_core: f64,
) -> Buffers {
    let tables = &model.tables;
    let operations = needs.operations;
    let mut all = Buffers::default();
    let window = BufferEntries {
        most: tables.balance_share,
        ..BufferEntries::from_spec(&tables.window_in_mode(needs.width))
    };
    let per_entry = match tables.group {
        Some(_) => needs.dispatch_turns,
        None => operations,
    };
    all[0] = window.buffer_use(on_core, per_entry);
    let of = |work: WorkKind| needs.work_operations(work);
    let (loads, stores) = (of(WorkKind::Load), of(WorkKind::Store));
    all[1] = BufferEntries::from_spec(&tables.load_queue).buffer_use(on_core, loads);
    all[2] = BufferEntries::from_spec(&tables.store_queue).buffer_use(on_core, stores);
    let vector_loads = loads * phase.vector_accesses();
    let int = of(WorkKind::Integer) + of(WorkKind::Multiply) + loads - vector_loads;
    let computing = [WorkKind::FpAdd, WorkKind::Vector, WorkKind::VectorMove].map(of);
    let vector = computing.into_iter().sum::<f64>() + vector_loads;
    all[3] = registers(&tables.int_registers, on_core).buffer_use(on_core, int);
    all[4] = registers(&tables.vector_registers, on_core).buffer_use(on_core, vector);
    let queues = tables.issue.iter().zip(&mut all[5..]);
    for (queue, buffer) in queues {
        let held = queue.holds.iter().map(|&work| {
            let sharers = tables.issue.iter().filter(|q| q.holds.contains(&work));
            entries(needs, work) * waiting_share(phase, work) / sharers.count().max(1) as f64
        });
        let per_instruction = held.sum::<f64>();
        let pool = BufferEntries {
            entries: f64::from(queue.entries),
            sharing: queue.sharing,
            reserve: f64::from(queue.reserve),
            most: 1.0,
        };
        *buffer = pool.buffer_use(on_core, per_instruction);
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

/// Registers beyond those that hold the threads' states.
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
fn fp_waiting(model: &CoreModel, phase: &PhaseSpec, needs: &InstructionNeeds) -> f64 {
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
pub(crate) struct WindowModel<'a> {
    pub(super) phase: &'a PhaseSpec,
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
    /// Size that the buffers sustain which it shares with no co-runner, instructions.
    pub(crate) own: f64,
}

impl<'a> WindowModel<'a> {
    /// The window of instructions that need `here`, and would need `alone` with the core to
    /// themselves, on a core with so many threads.
    pub(super) fn new(
        demand: &'a Demand,
        core: &CoreSpec,
        model: &CoreModel,
        [here, alone]: [&InstructionNeeds; 2],
        on_core: f64,
    ) -> Self {
        let phase = &demand.phase.spec;
        let used = buffers(model, phase, here, on_core);
        let whole = window(&buffers(model, phase, alone, 1.0));
        let out_of_order = core.pipeline == PipelineSpec::OutOfOrder;
        let alone = if out_of_order {
            window(&used).min(whole)
        } else {
            phase.ilp.use_distance
        };
        Self {
            phase,
            intensity: demand.intensity,
            buffers: used,
            is_shared: out_of_order && used.iter().any(|buffer| buffer.pool > 0.0),
            fp_waiting: fp_waiting(model, phase, here),
            whole,
            whole_parallelism: phase.ilp.parallelism_at(whole) / demand.intensity,
            whole_position: WindowPosition::new(whole),
            alone,
            alone_parallelism: phase.ilp.parallelism_at(alone) / demand.intensity,
            alone_position: WindowPosition::new(alone),
            alone_misses: phase.mlp.overlap_at(alone),
            own: own_window(&used),
        }
    }

    /// Parallelism of a window, instructions per cycle of mean latency 1.
    pub(super) fn parallelism(&self, window: f64) -> f64 {
        // The two common sizes are kept, because this takes a power.
        if window == self.whole {
            self.whole_parallelism
        } else if window == self.alone {
            self.alone_parallelism
        } else {
            self.phase.ilp.parallelism_at(window) / self.intensity
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
            self.phase.mlp.overlap_at(window)
        }
    }

    /// Window that it fills if so large a one sustains its rate. What is bound by ports piles up
    /// before them, as far as there is room, for the share `piled` of the time.
    pub(super) fn need(&self, sustains: f64, piled: f64) -> f64 {
        sustains + piled * (self.whole - sustains)
    }
}

/// Position of a window among [`ILP_WINDOWS`], behind which there is one of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WindowPosition {
    /// The smallest of them that is as large, or the largest.
    pub(super) next: usize,
    /// How far it is from the one before towards that one, by logarithm, 0 to 1.
    pub(super) share: f64,
}

impl WindowPosition {
    fn new(window: f64) -> Self {
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

/// A thread's pressure on a shared window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pressure {
    /// Entries that it wants while it computes.
    pub(crate) computing: f64,
    /// Entries that it would insert during a wait for memory.
    pub(crate) waiting: f64,
    /// Share of time that it waits for memory, 0 to 1.
    pub(crate) waits: f64,
}

impl Pressure {
    /// The same on a buffer where an instruction in the window takes so many entries.
    pub(crate) fn for_buffer(self, per_instruction: f64) -> Self {
        Self {
            computing: self.computing * per_instruction,
            waiting: self.waiting * per_instruction,
            waits: self.waits,
        }
    }

    fn entries(self) -> f64 {
        (1.0 - self.waits) * self.computing + self.waits * self.waiting.max(self.computing)
    }
}

/// Entries that thread `i` has of a shared window of `entries`.
pub(crate) fn window_share(entries: f64, pressures: &[Pressure], i: usize) -> f64 {
    let all: f64 = pressures.iter().map(|p| p.entries()).sum();
    let own = pressures[i].entries();
    if all <= entries {
        // What no thread wants is there for all.
        return own + entries - all;
    }
    // Every thread can insert at least the instruction that it dispatches next.
    (entries * own / all).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn computing(entries: f64) -> Pressure {
        Pressure {
            computing: entries,
            ..Pressure::default()
        }
    }

    fn chaser() -> Pressure {
        Pressure {
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
