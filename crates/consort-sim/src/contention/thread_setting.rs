//! A thread's setting: the core that it runs on, what follows from its demand there, and its part
//! of every shared structure.

use super::buffers::Buffers;
use super::caches::{CacheSets, SETS};
use super::claims::RESOURCES;
use super::core_model::{CLASSES, CoreModel, DIVIDER_KINDS, UnitClassUse};
use super::needs::{InstructionNeeds, StretchNeeds};
use super::types::Demand;
use crate::machine::CoreSpec;
use crate::phase::{LineEffect, MissCurve};
use crate::program::{ChainSpec, MixSpec};

/// Shares of prefetching that siblings on one prefetcher leave to a thread, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PrefetchShares {
    /// Share of the lines that are used.
    pub(crate) useful: f64,
    /// Share of the lines that are brought in vain.
    pub(crate) excess: f64,
}

impl PrefetchShares {
    /// All of it, as for a thread without siblings on its prefetcher.
    pub(crate) const WHOLE: Self = Self {
        useful: 1.0,
        excess: 1.0,
    };
}

/// Properties of a thread that hold as long as the set of running threads stays the same.
#[derive(Clone, Debug)]
pub(crate) struct ThreadSetting<'a> {
    /// Demand of the thread.
    pub(crate) demand: &'a Demand,
    /// The core that it runs on.
    pub(crate) core: &'a CoreSpec,
    /// Clock, Hz.
    pub(crate) hz: f64,
    /// The core's structures and ports.
    pub(crate) model: &'a CoreModel,
    /// Needs of an average instruction on this core.
    pub(crate) needs: InstructionNeeds,
    /// Needs of the instructions of each kind of its stretches.
    pub(crate) stretches: Vec<StretchNeeds>,
    /// Use of each buffer by its window.
    pub(crate) buffers: Buffers,
    /// Floating-point operations per instruction in the window that wait in a scheduler.
    pub(crate) fp_waiting: f64,
    /// Composition of its longest dependence chain.
    pub(crate) chain: ChainSpec,
    /// Window that it would have with the core to itself, instructions.
    pub(crate) whole_window: f64,
    /// Threads on the core, itself included.
    pub(crate) on_core: f64,
    /// Latency of an LLC hit, cycles.
    pub(crate) llc_cycles: f64,
    /// False where memory comes behind the L2.
    pub(crate) has_llc: bool,
    /// Latency of a hit in another LLC domain, cycles, where there is such a thing.
    pub(crate) remote_cycles: Option<f64>,
    /// Latency of memory behind the LLC, idle, cycles.
    pub(crate) memory_cycles: f64,
    /// Data misses, for lines as long as the machine's.
    pub(crate) data_curve: &'a MissCurve,
    /// Instruction misses, likewise.
    pub(crate) code_curve: &'a MissCurve,
    /// Effect of the line length on data misses.
    pub(crate) data_lines: LineEffect,
    /// Length of a line, bytes.
    pub(crate) line_bytes: f64,
    /// Effect of the line length on instruction misses.
    pub(crate) code_lines: LineEffect,
    /// Shares of prefetching that siblings leave to it.
    pub(crate) prefetching: PrefetchShares,
    /// Unit-cycles per instruction and units, by class.
    pub(crate) units: [UnitClassUse; CLASSES],
    /// Parallelism of the whole window; see [`ThreadSetting::parallelism`].
    pub(crate) whole: f64,
    /// True if the chip counts what an out-of-order core would take in order.
    pub(crate) counts_in_order: bool,
    /// [`ThreadSetting::dependences`] while no co-runner uses the units, cycles per instruction; 0 on an
    /// out-of-order core where nobody counts it.
    pub(crate) undisturbed: f64,
    /// Window that co-runners leave alone, and its consequences.
    pub(crate) alone: WindowAlone,
    /// TLB misses per instruction.
    pub(crate) tlb: f64,
    /// Effective capacities that lines of code find in the sets of the L1I.
    pub(crate) sets: CacheSets,
    /// Mispredictions per instruction with the whole predictor; see [`ThreadSetting::mispredicted`].
    pub(crate) mispredicted: f64,
    /// Resolution of mispredicted branches.
    pub(crate) resolving: BranchResolution,
    /// Use per instruction of what the core's threads share.
    pub(crate) use_of: [f64; RESOURCES],
    /// Rates that its core sustains for this thread alone.
    pub(crate) limits: CoreLimits,
    /// Latency of an instruction of the longest chain when all data is in the L1, cycles.
    pub(crate) latency: f64,
}

/// A window that no co-runner clogs, and its consequences.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WindowAlone {
    /// Size of the window, instructions.
    pub(crate) window: f64,
    /// Window sustained by the buffers that it shares with no co-runner, instructions.
    pub(crate) own_window: f64,
    /// [`ThreadSetting::parallelism`] of the window.
    pub(crate) parallelism: f64,
    /// Long misses that are in it at once, with lines of 64 bytes and however many the core can
    /// have outstanding.
    pub(crate) parallel_misses: f64,
}

/// A thread's present part of every shared structure, as estimated by the iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ResourceShares {
    /// Bytes of data, as its curve counts them, in L1D, L2, LLC, and over all LLC domains.
    pub(crate) data: [f64; 4],
    /// Bytes of code, as its curve counts them, in L1I, L2, LLC, and over all LLC domains.
    pub(crate) code: [f64; 4],
    /// Bytes of code in the L1I, for each effective capacity of its [`CacheSets`].
    pub(crate) code_l1i: [f64; SETS],
    /// Window, instructions.
    pub(crate) window: f64,
    /// Branch predictor, KiB.
    pub(crate) predictor_kib: f64,
    /// Cycles that an operation waits for co-runners' operations, by unit class.
    pub(crate) unit_wait: [f64; CLASSES],
    /// Cycles that an operation waits for those of its own thread, by unit class.
    pub(crate) own_wait: [f64; CLASSES],
    /// Share of its dividers that co-runners use, by kind, 0 to 1.
    pub(crate) divided: [f64; DIVIDER_KINDS],
    /// Most demand misses that it can have on their way at once, lines.
    pub(crate) misses: f64,
    /// Share of its prefetches that find room in a miss queue, 0 to 1.
    pub(crate) prefetching: f64,
    /// Cycles per instruction while it dispatches; 0 where it is not known yet.
    pub(crate) pace: f64,
}

/// Instructions per cycle that a core sustains for one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CoreLimits {
    /// By dispatch.
    pub(crate) dispatch: f64,
    /// By dispatch and ports.
    pub(crate) ports: f64,
    /// By dispatch and fetch, which fill the window.
    pub(crate) front: f64,
    /// By dispatch, ports and fetch.
    pub(crate) all: f64,
    /// The same were dispatch and fetch no slower than the dispatch of the pipeline in which the
    /// resolution of branches is measured.
    pub(crate) hurried: f64,
    /// Unevenness of dispatch and fetch, 0 to 1; see [`overlapped_time`](super::claims::overlapped_time).
    pub(crate) uneven_front: f64,
    /// Share of the time of dispatch and fetch in which fetch is the slower, 0 to 1.
    pub(crate) fetched: f64,
    /// Share of the time in which operations pile up before ports, 0 to 1.
    pub(crate) piled: f64,
}

/// Resolution of mispredicted branches on a core, whatever runs beside.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BranchResolution {
    /// Cycles until a branch is resolved, over the latency of the chain that it waits for.
    pub(super) steps: f64,
    /// Loads that miss for whose data it waits, per miss and instruction.
    pub(super) misses: f64,
    /// Cycles per instruction by which dispatch is slower than that of the pipeline in which it is
    /// measured.
    pub(super) late: f64,
    /// Share of its wait that is left at its dispatch so late, 0 to 1.
    pub(super) left_alone: f64,
    /// The same at half the pace of that pipeline.
    pub(super) half: f64,
    /// Exponents of the pace by which it falls up to there and beyond.
    pub(super) falls: [f64; 2],
}

impl ThreadSetting<'_> {
    /// Returns the effect of the line length on misses of code, or of data.
    pub(crate) fn lines(&self, code: bool) -> LineEffect {
        if code {
            self.code_lines
        } else {
            self.data_lines
        }
    }

    pub(super) fn mix(&self) -> &MixSpec {
        &self.demand.phase.spec.mix
    }

    /// Cycles of an L2 hit; where there is no L2, of an LLC hit.
    pub(super) fn l2_cycles(&self) -> f64 {
        self.core
            .l2
            .as_ref()
            .map_or(self.llc_cycles, |l2| l2.latency_cycles)
    }
}
