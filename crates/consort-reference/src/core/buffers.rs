//! Entries of buffers, and how threads of a core divide them.

use consort_sim::machine::detail::{BufferSharing, BufferSpec, QueueSpec, RegistersSpec};
use consort_sim::machine::tables::CoreTables;
use strum::VariantArray;

/// Buffer between dispatch and commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum Buffer {
    /// Reorder buffer, or group table.
    Window,
    /// Issue queues, all together.
    Issue,
    /// Load queue.
    Loads,
    /// Store queue.
    Stores,
    /// Integer registers.
    IntRegisters,
    /// Floating-point and vector registers.
    VectorRegisters,
}

impl Buffer {
    /// Number of buffers.
    pub const COUNT: usize = Self::ALL.len();
    /// Every buffer.
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().expect("all");

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Issue => "issue queues",
            Self::Loads => "load queue",
            Self::Stores => "store queue",
            Self::IntRegisters => "integer registers",
            Self::VectorRegisters => "vector registers",
        }
    }
}

/// Entries of one buffer and who holds how many.
#[derive(Clone, Debug)]
pub(crate) struct BufferPool {
    entries: u32,
    sharing: BufferSharing,
    reserve: u32,
    used: Vec<u32>,
}

impl BufferPool {
    /// An empty buffer of a core on which `threads` run.
    pub(crate) fn new(spec: BufferSpec, threads: usize) -> Self {
        Self {
            entries: spec.entries,
            sharing: spec.sharing,
            reserve: spec.reserve,
            used: vec![0; threads],
        }
    }

    /// Registers beyond those that hold the threads' states.
    pub(crate) fn for_registers(spec: RegistersSpec, threads: usize) -> Self {
        let states = match spec.sharing {
            BufferSharing::Private => spec.architected,
            _ => spec.architected * threads as u32,
        };
        let buffer = BufferSpec {
            entries: spec.entries.saturating_sub(states).max(threads as u32),
            sharing: spec.sharing,
            reserve: 0,
        };
        Self::new(buffer, threads)
    }

    /// True if a thread can have another entry.
    pub(crate) fn has_room(&self, thread: usize) -> bool {
        let own = self.used[thread];
        let threads = self.used.len() as u32;
        match self.sharing {
            BufferSharing::Private => own < self.entries,
            BufferSharing::Partitioned => own < self.entries / threads,
            BufferSharing::Halved => self.count_used(|t| t % 2 == thread % 2) < self.entries / 2,
            BufferSharing::Shared => {
                let kept = self.reserved_for_others(thread);
                self.count_used(|_| true) + kept < self.entries
            }
        }
    }

    /// True if co-runners leave no room to a thread that holds less than its share.
    pub(crate) fn is_crowded(&self, thread: usize) -> bool {
        let threads = self.used.len() as u32;
        let (others, share) = match self.sharing {
            BufferSharing::Private | BufferSharing::Partitioned => return false,
            BufferSharing::Halved => (threads > 2, self.entries / threads),
            BufferSharing::Shared => (threads > 1, self.entries / threads),
        };
        others && self.used[thread] < share
    }

    /// Takes an entry.
    pub(crate) fn take(&mut self, thread: usize) {
        self.used[thread] += 1;
    }

    /// Gives an entry back.
    pub(crate) fn give(&mut self, thread: usize) {
        self.used[thread] = self.used[thread].saturating_sub(1);
    }

    /// Entries that a thread holds.
    pub(crate) fn used(&self, thread: usize) -> u32 {
        self.used[thread]
    }

    /// Share of all entries that are held.
    pub(crate) fn filled_share(&self) -> f64 {
        f64::from(self.count_used(|_| true)) / f64::from(self.entries)
    }

    /// True if a thread holds more than a share of a pool for all.
    pub(crate) fn exceeds(&self, thread: usize, share: f64) -> bool {
        self.sharing == BufferSharing::Shared
            && self.used.len() > 1
            && f64::from(self.used[thread]) >= share * f64::from(self.entries)
    }

    fn count_used(&self, who: impl Fn(usize) -> bool) -> u32 {
        let used = self.used.iter().enumerate();
        used.filter(|(t, _)| who(*t)).map(|(_, used)| used).sum()
    }

    fn reserved_for_others(&self, thread: usize) -> u32 {
        let others = self.used.iter().enumerate().filter(|(t, _)| *t != thread);
        others
            .map(|(_, &used)| self.reserve.saturating_sub(used))
            .sum()
    }
}

/// All buffers of a core.
#[derive(Clone, Debug)]
pub(crate) struct BufferPools {
    pub(crate) window: BufferPool,
    pub(crate) loads: BufferPool,
    pub(crate) stores: BufferPool,
    pub(crate) int: BufferPool,
    pub(crate) vector: BufferPool,
    pub(crate) issue: Vec<IssueQueue>,
}

#[derive(Clone, Debug)]
pub(crate) struct IssueQueue {
    pub(crate) pool: BufferPool,
    /// Bits of the work that it holds.
    pub(crate) holds: u32,
}

impl BufferPools {
    /// Empty buffers of a core on which `threads` dispatch up to `width` operations at a time.
    pub(crate) fn new(tables: &CoreTables, threads: usize, width: u32) -> Self {
        Self {
            window: BufferPool::new(tables.window_in_mode(width), threads),
            loads: BufferPool::new(tables.load_queue, threads),
            stores: BufferPool::new(tables.store_queue, threads),
            int: BufferPool::for_registers(
                renaming(tables, tables.int_registers, threads),
                threads,
            ),
            vector: BufferPool::for_registers(
                renaming(tables, tables.vector_registers, threads),
                threads,
            ),
            issue: tables.issue.iter().map(|q| queue(q, threads)).collect(),
        }
    }

    /// Entries that a thread holds of a buffer.
    pub(crate) fn used_entries(&self, buffer: Buffer, thread: usize) -> u32 {
        match buffer {
            Buffer::Issue => self.issue.iter().map(|queue| queue.pool.used(thread)).sum(),
            _ => self.pool(buffer).used(thread),
        }
    }

    /// The pool of a buffer; of issue queues, the first.
    pub(crate) fn pool(&self, buffer: Buffer) -> &BufferPool {
        match buffer {
            Buffer::Window => &self.window,
            Buffer::Issue => &self.issue[0].pool,
            Buffer::Loads => &self.loads,
            Buffer::Stores => &self.stores,
            Buffer::IntRegisters => &self.int,
            Buffer::VectorRegisters => &self.vector,
        }
    }

    /// The emptiest queue that holds some work and has room for a thread; `None` if all are full,
    /// `Some(None)` if no queue holds it.
    pub(crate) fn queue_for(&self, work: u32, thread: usize) -> Option<Option<u8>> {
        let mut holding = self
            .issue
            .iter()
            .enumerate()
            .filter(|(_, q)| q.holds & work != 0);
        if holding.clone().next().is_none() {
            return Some(None);
        }
        let first = holding.clone().find(|(_, q)| q.pool.has_room(thread))?;
        let fuller = |a: &IssueQueue, b: &IssueQueue| a.pool.filled_share() < b.pool.filled_share();
        let best = holding.try_fold(first, |best, q| {
            let better = q.1.pool.has_room(thread) && fuller(q.1, best.1);
            Some(if better { q } else { best })
        });
        best.map(|(at, _)| Some(at as u8))
    }
}

/// The register file of a core's file, or, where it says nothing and the window is a pool without a
/// limit per thread, one for each thread's equal part of the window.
///
/// In such a pool freed entries end up with the thread that holds them longest: one that computes
/// gives its own back within cycles, one that waits for memory when its next load returns. What
/// keeps a chase from filling everything there is that each thread renames to registers of its own,
/// as with the defaults of Multi2Sim: 62 registers to rename to per thread and 64 entries of the
/// reorder buffer (`RfKind`, `RfIntSize`, `RobSize`).
fn renaming(tables: &CoreTables, spec: RegistersSpec, threads: usize) -> RegistersSpec {
    let is_open = tables.window.sharing == BufferSharing::Shared && tables.balance_share >= 1.0;
    // The state takes registers of every file that is described.
    let is_described = spec.architected > 0 || spec.sharing != BufferSharing::Private;
    if threads < 2 || !is_open || is_described {
        return spec;
    }
    RegistersSpec {
        entries: spec.entries / threads as u32,
        ..spec
    }
}

fn queue(spec: &QueueSpec, threads: usize) -> IssueQueue {
    let buffer = BufferSpec {
        entries: spec.entries,
        sharing: spec.sharing,
        reserve: spec.reserve,
    };
    IssueQueue {
        pool: BufferPool::new(buffer, threads),
        holds: spec
            .holds
            .iter()
            .fold(0, |bits, work| bits | 1 << work.index()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most entries that thread 0 of `threads` gets while the others hold none.
    fn most(sharing: BufferSharing, reserve: u32, threads: usize) -> u32 {
        let spec = BufferSpec {
            entries: 96,
            sharing,
            reserve,
        };
        let mut pool = BufferPool::new(spec, threads);
        while pool.has_room(0) {
            pool.take(0);
        }
        pool.used(0)
    }

    #[test]
    fn buffers_are_divided_as_the_file_says() {
        assert_eq!(
            [1, 2, 4].map(|n| most(BufferSharing::Private, 0, n)),
            [96, 96, 96]
        );
        assert_eq!(
            [1, 2, 4].map(|n| most(BufferSharing::Partitioned, 0, n)),
            [96, 48, 24]
        );
        assert_eq!([2, 4].map(|n| most(BufferSharing::Halved, 0, n)), [48, 48]);
        assert_eq!(
            [1, 2, 4].map(|n| most(BufferSharing::Shared, 0, n)),
            [96, 96, 96]
        );
        assert_eq!(
            [1, 2, 4].map(|n| most(BufferSharing::Shared, 7, n)),
            [96, 89, 75]
        );
    }
}
