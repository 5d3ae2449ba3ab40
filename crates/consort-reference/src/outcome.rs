//! Outcome of a run, thread by thread.

use crate::core::buffers::Buffer;
use strum::VariantArray;

/// Cause of a dispatch slot that was used or lost, in the order of [`SlotCause::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum SlotCause {
    /// An operation was dispatched.
    Base,
    /// Mispredicted branch: until it was resolved, and the refill.
    Branch,
    /// Fetch: misses of the L1I, taken branches, too few bytes, targets not known.
    Fetch,
    /// Operations wait for the results of others, the L1D among them.
    Dependence,
    /// Operations are ready and wait for a port.
    Ports,
    /// Stores wait to be written.
    Stores,
    /// Operations are done and wait to be committed, or a buffer is full of what is.
    Commit,
    /// Data of a load comes from the L2.
    L2,
    /// Data of a load comes from the LLC.
    Llc,
    /// Data of a load comes from memory.
    Memory,
    /// A co-runner had the slot, the fetch turn or the entries of a shared buffer.
    CoRunner,
}

impl SlotCause {
    /// Number of causes.
    pub const COUNT: usize = Self::ALL.len();
    /// Every cause.
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().expect("all");

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Branch => "branch",
            Self::Fetch => "fetch",
            Self::Dependence => "dependence",
            Self::Ports => "ports",
            Self::Stores => "stores",
            Self::Commit => "commit",
            Self::L2 => "l2",
            Self::Llc => "llc",
            Self::Memory => "memory",
            Self::CoRunner => "co-runner",
        }
    }
}

/// Cycles by cause; their sum is all cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReferenceStack([f64; SlotCause::COUNT]);

impl ReferenceStack {
    /// Cycles of a cause.
    pub fn cycles(&self, cause: SlotCause) -> f64 {
        self.0[cause as usize]
    }

    /// Cycles of all causes.
    pub fn total(&self) -> f64 {
        self.0.iter().sum()
    }

    pub(crate) fn add(&mut self, cause: SlotCause, cycles: f64) {
        self.0[cause as usize] += cycles;
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        let parts = self.0.iter().zip(&before.0);
        let mut difference = Self::default();
        for (cause, (now, then)) in difference.0.iter_mut().zip(parts) {
            *cause = now - then;
        }
        difference
    }
}

/// Requests of a thread to caches and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryRequests {
    /// Accesses to the L1D: loads that no store served, and stores that were written.
    pub l1d_accesses: u64,
    /// Lines that the L1D requested.
    pub l1d_misses: u64,
    /// Lines that the L1I requested.
    pub l1i_misses: u64,
    /// Lines that the L2 requested on demand.
    pub l2_misses: u64,
    /// Lines that the LLC requested on demand.
    pub llc_misses: u64,
    /// Lines to and from memory.
    pub memory_lines: u64,
    /// Lines requested ahead, at any level.
    pub prefetches: u64,
    /// Page walks for data.
    pub tlb_misses: u64,
}

impl MemoryRequests {
    fn since(&self, before: &Self) -> Self {
        Self {
            l1d_accesses: self.l1d_accesses - before.l1d_accesses,
            l1d_misses: self.l1d_misses - before.l1d_misses,
            l1i_misses: self.l1i_misses - before.l1i_misses,
            l2_misses: self.l2_misses - before.l2_misses,
            llc_misses: self.llc_misses - before.llc_misses,
            memory_lines: self.memory_lines - before.memory_lines,
            prefetches: self.prefetches - before.prefetches,
            tlb_misses: self.tlb_misses - before.tlb_misses,
        }
    }
}

/// A thread's accounts from the beginning of a run, or of its measured part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadOutcome {
    /// Instructions committed.
    pub instructions: u64,
    /// Operations committed.
    pub operations: u64,
    /// Cycles of its core.
    pub cycles: u64,
    /// Cycles by cause.
    pub stack: ReferenceStack,
    /// Caches and memory.
    pub memory: MemoryRequests,
    /// Branches that were committed.
    pub branches: u64,
    /// Of these, mispredicted ones.
    pub branch_misses: u64,
    /// Loads that got their data from a store in flight.
    pub forwarded: u64,
    /// Entries held, summed over cycles, by [`Buffer`].
    pub held: [u64; Buffer::COUNT],
    /// Cycles in which dispatch stopped because a buffer was full, by [`Buffer`].
    pub full: [u64; Buffer::COUNT],
}

impl ThreadOutcome {
    /// Instructions per cycle.
    pub fn ipc(&self) -> f64 {
        self.instructions as f64 / self.cycles.max(1) as f64
    }

    /// Mean entries held of a buffer.
    pub fn occupancy(&self, buffer: Buffer) -> f64 {
        self.held[buffer as usize] as f64 / self.cycles.max(1) as f64
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        let difference = |now: &[u64; Buffer::COUNT], then: &[u64; Buffer::COUNT]| {
            std::array::from_fn(|i| now[i] - then[i])
        };
        Self {
            instructions: self.instructions - before.instructions,
            operations: self.operations - before.operations,
            cycles: self.cycles - before.cycles,
            stack: self.stack.since(&before.stack),
            memory: self.memory.since(&before.memory),
            branches: self.branches - before.branches,
            branch_misses: self.branch_misses - before.branch_misses,
            forwarded: self.forwarded - before.forwarded,
            held: difference(&self.held, &before.held),
            full: difference(&self.full, &before.full),
        }
    }
}

/// Outcome of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceOutcome {
    /// Threads in the order of their placements, each over its measured instructions.
    pub threads: Vec<ThreadOutcome>,
}
