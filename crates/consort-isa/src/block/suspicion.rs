//! Suspicion: the cause that a pile of samples on an instruction would be waiting for.
//!
//! Instructions retire in order. A timer interrupt names the oldest instruction that had not
//! retired, and lets the one that is being waited for finish first where that one had started: so
//! the pile stands *behind* the slow instruction on cores that run ahead of a waiting load, *on its
//! first user* where the core stops at the use (in-order cores), and on Arm cores, which drop what
//! is in flight, *on the slow instruction itself*.

use super::BlockEntry;
use crate::{Arch, FlowKind, Instruction, UnitLatency};

/// The cause that an excess of samples on one instruction points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// None: its samples are those of ordinary progress.
    None,
    /// An access to memory. If `chained`, the address itself was loaded just before, as in a walk
    /// along pointers, so such loads cannot overlap.
    Memory {
        /// The address of the access depends on an earlier load of the block.
        chained: bool,
    },
    /// Floating-point arithmetic on a memory operand: the unit or the memory.
    MemoryOrUnit,
    /// A store: the store buffer may be full.
    StoreBuffer,
    /// An execution unit of long latency.
    Unit,
    /// The front end, which has to deliver from a new place.
    FrontEnd,
}

impl Suspicion {
    pub(crate) const fn is_memory(self) -> bool {
        matches!(
            self,
            Self::Memory { .. } | Self::MemoryOrUnit | Self::StoreBuffer
        )
    }
}

/// Number of instructions back to the load whose user an instruction may be. A
/// stop at the use shows at once on in-order cores, which issue two or three
/// instructions per cycle and hit the first level within four cycles.
const USE_WINDOW: usize = 8;

pub(super) struct BlockSurroundings<'a> {
    pub(super) arch: Arch,
    pub(super) block: &'a [Instruction],
    /// Instructions before the block in memory.
    pub(super) context: &'a [Instruction],
    /// Accesses to memory that retire together with a branch to the block.
    pub(super) sources: &'a [Instruction],
    pub(super) entry: BlockEntry,
    pub(super) loops: bool,
    /// Part of the context that comes before the block in each round of a loop that it ends.
    pub(super) lead: &'a [Instruction],
}

impl BlockSurroundings<'_> {
    pub(super) fn suspicions(&self) -> Box<[Suspicion]> {
        (0..self.block.len())
            .map(|index| self.suspicion(index))
            .collect()
    }

    fn suspicion(&self, index: usize) -> Suspicion {
        let at = &self.block[index];
        if at.memory.repeats {
            return Suspicion::Memory { chained: false };
        }
        self.suspect_predecessor(index)
            .or_else(|| self.suspect_first_use(index))
            .or_else(|| self.suspect_itself(index))
            .unwrap_or_else(|| self.suspect_entry(index))
    }

    /// Suspects the instruction directly before, if it is slow.
    fn suspect_predecessor(&self, index: usize) -> Option<Suspicion> {
        let position = self.previous_position(index)?;
        let before = self.instruction_at(position);
        if before.may_miss() {
            return Some(self.suspect_load(position));
        }
        if before.unit != UnitLatency::Short {
            return Some(Suspicion::Unit);
        }
        before
            .may_fill_store_buffer()
            .then_some(Suspicion::StoreBuffer)
    }

    fn suspect_load(&self, position: Position) -> Suspicion {
        match self.instruction_at(position).unit {
            UnitLatency::Short => Suspicion::Memory {
                chained: self.is_chained(position),
            },
            UnitLatency::Pipelined => Suspicion::MemoryOrUnit,
            UnitLatency::Long => Suspicion::Unit,
        }
    }

    /// Suspects a recent load, if this instruction is the first to need its result.
    fn suspect_first_use(&self, index: usize) -> Option<Suspicion> {
        let mut needed = self.block[index].reads;
        for earlier in (index.saturating_sub(USE_WINDOW)..index).rev() {
            let producer = &self.block[earlier];
            let provides = producer.writes.intersects(needed);
            if provides && producer.may_miss() && self.is_first_user(earlier, index) {
                let chained = self.is_chained(Position::Block(earlier));
                return Some(Suspicion::Memory { chained });
            }
            needed = needed.without(producer.writes);
        }
        None
    }

    fn is_first_user(&self, load: usize, user: usize) -> bool {
        let fetched = self.block[load].writes;
        !self.block[load + 1..user]
            .iter()
            .any(|between| between.reads.intersects(fetched))
    }

    /// Suspects the instruction itself: long units stay unfinished, and Arm cores blame the load.
    fn suspect_itself(&self, index: usize) -> Option<Suspicion> {
        let at = &self.block[index];
        if at.unit == UnitLatency::Long {
            return Some(Suspicion::Unit);
        }
        let blames_the_load = self.arch == Arch::Aarch64 && at.may_miss();
        blames_the_load.then(|| Suspicion::Memory {
            chained: self.is_chained(Position::Block(index)),
        })
    }

    /// Suspects the front end on the first instruction of a block, and on the second, which is
    /// named while the first is waited for. A tight loop is excluded, because it is delivered from
    /// a buffer.
    ///
    /// Most of what looks like the front end is a load that is compared and branched upon in one
    /// operation (`cmp mem, reg; jcc` on x86): the sample then stands at the branch's target.
    fn suspect_entry(&self, index: usize) -> Suspicion {
        if index == 0 && !self.sources.is_empty() {
            return Suspicion::Memory { chained: false };
        }
        let refills = matches!(
            self.entry,
            BlockEntry::Fallthrough
                | BlockEntry::AfterCall
                | BlockEntry::Target
                | BlockEntry::Joined
        );
        if index <= 1 && refills && !self.loops {
            Suspicion::FrontEnd
        } else {
            Suspicion::None
        }
    }

    /// Position of the instruction that retires directly before `index`. A conditional branch is
    /// skipped, because it retires together with the comparison before it.
    fn previous_position(&self, index: usize) -> Option<Position> {
        let previous = self.step_back(Position::Block(index))?;
        match self.instruction_at(previous).flow {
            FlowKind::Conditional(_) => self.step_back(previous),
            _ => Some(previous),
        }
    }

    fn step_back(&self, position: Position) -> Option<Position> {
        match position {
            Position::Block(0) if self.loops => Some(Position::Block(self.block.len() - 1)),
            Position::Block(0) if self.entry == BlockEntry::Target => None,
            Position::Block(0) => self.context.len().checked_sub(1).map(Position::Context),
            Position::Block(index) => Some(Position::Block(index - 1)),
            Position::Context(index) => index.checked_sub(1).map(Position::Context),
        }
    }

    const fn instruction_at(&self, position: Position) -> &Instruction {
        match position {
            Position::Block(index) => &self.block[index],
            Position::Context(index) => &self.context[index],
        }
    }

    /// True if the address of the access at `position` was itself loaded. The computation of the
    /// address is followed back through the block, and once around if the block is a loop.
    fn is_chained(&self, position: Position) -> bool {
        let Position::Block(load) = position else {
            return false;
        };
        let mut needed = self.block[load].address_registers;
        for producer in self.backwards_from(load) {
            if !producer.writes.intersects(needed) {
                continue;
            }
            if producer.may_miss() {
                return true;
            }
            needed = needed.without(producer.writes).union(producer.reads);
        }
        false
    }

    fn backwards_from(&self, index: usize) -> impl Iterator<Item = &Instruction> {
        let (before, from) = self.block.split_at(index);
        let around = if self.loops || !self.lead.is_empty() {
            from
        } else {
            &[]
        };
        let lead = self.lead.iter().rev();
        before.iter().rev().chain(lead).chain(around.iter().rev())
    }
}

#[derive(Clone, Copy)]
enum Position {
    Block(usize),
    Context(usize),
}
