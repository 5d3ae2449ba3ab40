//! Share of a pile that is a stall, by suspicion and worth.
//!
//! The worth of the samples under one suspicion is in cycles per execution of their block.
//!
//! Samples count time in an unknown unit; the other instructions of the block calibrate it. At most
//! w = [`RETIRE_WIDTH`] instructions retire per cycle. Of m other instructions, up to w - 1 may
//! retire in the cycle that ends the wait; the remaining m - w + 1 take at least ceil((m - w + 1) /
//! w) cycles per execution, in which they are seen. If they have R samples together and the pile
//! has c, the pile takes at least c / R times these cycles. With fewer than w other instructions a
//! pile cannot be calibrated.
//!
//! The piles of one suspicion are taken together because their waits overlap: independent loads of
//! a block hit or miss at the same time.

use super::ShareBounds;
use super::accesses::DataLevel;
use super::histogram::{InstructionSamples, KINDS, NONE, SuspicionTally};
use crate::Suspicion;
use crate::arch::{L1_HIT_CYCLES, RETIRE_WIDTH};

/// Half a sample represents the samples that chance may have kept from a pile (Jeffreys' prior for
/// a count).
pub(super) const UNSEEN_SAMPLES: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampleWorth {
    /// Cycles per execution, at least; meaningless unless `calibrated`.
    pub(super) cycles: f64,
    /// The part of `cycles` that the instructions take to retire anyway.
    pub(super) base_cycles: f64,
    /// True if the rest of the block is large enough to calibrate.
    pub(super) calibrated: bool,
}

/// The time of a block outside a pile.
#[derive(Clone, Copy, Debug)]
struct BlockRemainder {
    weight: f64,
    instructions: usize,
}

impl BlockRemainder {
    fn is_large(self) -> bool {
        as_f64(self.instructions) >= RETIRE_WIDTH
    }

    /// Cycles in which the rest is seen to retire; its part of a group if it is too small to be
    /// seen.
    fn least_cycles(self) -> f64 {
        let instructions = as_f64(self.instructions);
        if self.is_large() {
            ((instructions - RETIRE_WIDTH + 1.0) / RETIRE_WIDTH).ceil()
        } else {
            instructions / RETIRE_WIDTH
        }
    }

    fn pile_worth(self, pile: InstructionSamples, one_sample: f64) -> f64 {
        let weight = self.weight + UNSEEN_SAMPLES * one_sample;
        pile.cautious_weight() / weight * self.least_cycles()
    }
}

/// Worth of the samples of `tally` in the block whose tallies are `all`.
///
/// Both the instructions without suspicion and all those without this one give a lower bound; the
/// greater valid one is used.
pub(super) fn worth(tally: SuspicionTally, all: &[SuspicionTally; KINDS.len()]) -> SampleWorth {
    let total = total(all);
    if tally.pile.count == 0 || total.pile.weight <= 0.0 {
        return SampleWorth {
            cycles: 0.0,
            base_cycles: 0.0,
            calibrated: true,
        };
    }
    let others = BlockRemainder {
        weight: (total.pile.weight - tally.pile.weight).max(0.0),
        instructions: total.instructions - tally.instructions,
    };
    let unsuspected = BlockRemainder {
        weight: all[NONE].pile.weight,
        instructions: all[NONE].instructions,
    };
    let calibrated = others.is_large();
    let cycles = [others, unsuspected]
        .into_iter()
        .filter(|rest| rest.is_large() || !calibrated)
        .map(|rest| rest.pile_worth(tally.pile, total.pile.mean_weight()))
        .fold(0.0, f64::max);
    SampleWorth {
        cycles,
        base_cycles: as_f64(tally.instructions) / RETIRE_WIDTH,
        calibrated,
    }
}

fn total(all: &[SuspicionTally; KINDS.len()]) -> SuspicionTally {
    let mut total = SuspicionTally::default();
    for tally in all {
        total.pile.add(tally.pile);
        total.instructions += tally.instructions;
    }
    total
}

/// Instructions and samples of one interval are far below 2^32.
pub(super) fn as_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Cycles from a load to its use when it hits the second level: 12 to 14 on AMD Zen, 14 on Intel from
/// Skylake-SP on (their optimisation guides).
const L2_HIT_CYCLES: f64 = 14.0;

/// Cycles that any taken branch may cost the front end without a miss.
const REDIRECT_CYCLES: f64 = 1.0;

/// Shares of the time of the samples under one suspicion; what is left to 1 is base.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StallSplit {
    pub(super) memory: f64,
    pub(super) unit: f64,
    pub(super) front_end: f64,
    pub(super) memory_bounds: ShareBounds,
}

/// Splits the time of the samples under one suspicion. `loop_instructions` is the length of the block
/// if it is a loop by itself.
pub(super) fn split_time(
    suspicion: Suspicion,
    worth: SampleWorth,
    loop_instructions: Option<usize>,
) -> StallSplit {
    match suspicion {
        Suspicion::None => StallSplit::default(),
        Suspicion::Memory { chained: true } => split_chained(worth, loop_instructions),
        Suspicion::Memory { chained: false } => split_memory(worth),
        Suspicion::MemoryOrUnit => split_memory_or_unit(worth),
        Suspicion::StoreBuffer => split_store_buffer(worth),
        Suspicion::Unit => StallSplit {
            unit: worth.share_beyond(0.0),
            ..StallSplit::default()
        },
        Suspicion::FrontEnd => StallSplit {
            front_end: worth.middle_beyond(REDIRECT_CYCLES),
            ..StallSplit::default()
        },
    }
}

impl StallSplit {
    /// The split with the level of the data taken into account. In the first-level cache nothing
    /// waits for memory; what seemed to waits for the unit that serves it. Pointer chasing in the
    /// second level waits for hits there, however little its neighbours show of a pile's length.
    /// Beyond the caches of the core, the whole pile behind an access waits.
    pub(super) fn adjust_to_level(
        self,
        level: DataLevel,
        suspicion: Suspicion,
        worth: SampleWorth,
    ) -> Self {
        match level {
            DataLevel::Second { misses } if suspicion == (Suspicion::Memory { chained: true }) => {
                let longer = misses * (L2_HIT_CYCLES - L1_HIT_CYCLES);
                let missed = worth.share_beyond(0.0) * longer / (L1_HIT_CYCLES + longer);
                let memory = if worth.calibrated {
                    self.memory.max(missed)
                } else {
                    missed
                };
                Self { memory, ..self }
            }
            DataLevel::Unknown | DataLevel::Second { .. } => self,
            DataLevel::First => Self {
                memory: 0.0,
                unit: self.unit + self.memory,
                memory_bounds: ShareBounds::default(),
                ..self
            },
            DataLevel::Beyond if suspicion.is_memory() => {
                memory_split(worth.share_beyond(0.0), self.memory_bounds)
            }
            DataLevel::Beyond => self,
        }
    }
}

impl SampleWorth {
    /// Cycles beyond what the instructions take to retire.
    fn excess(self) -> f64 {
        (self.cycles - self.base_cycles).max(0.0)
    }

    /// The share of the pile that lies beyond `cycles` of excess.
    fn share_beyond(self, cycles: f64) -> f64 {
        if self.cycles > 0.0 {
            (self.excess() - cycles).max(0.0) / self.cycles
        } else {
            0.0
        }
    }

    /// The middle of what is possible if a wait of up to `cycles` says nothing:
    /// half of a short pile, all but `cycles` of a long one.
    fn middle_beyond(self, cycles: f64) -> f64 {
        let half = self.share_beyond(0.0) / 2.0;
        half.max(self.share_beyond(cycles))
    }
}

fn split_memory(worth: SampleWorth) -> StallSplit {
    let high = worth.share_beyond(0.0);
    if !worth.calibrated {
        let low = 0.0;
        return memory_split(high / 2.0, ShareBounds { low, high });
    }
    let low = worth.share_beyond(L1_HIT_CYCLES);
    memory_split(
        worth.middle_beyond(L1_HIT_CYCLES),
        ShareBounds { low, high },
    )
}

/// A loop that walks along pointers takes at least the time of one hit per execution, nearly all of
/// it stalled behind the load; and loops in which threads spend much time are more likely to miss.
fn split_chained(worth: SampleWorth, loop_instructions: Option<usize>) -> StallSplit {
    let plain = split_memory(worth);
    let Some(instructions) = loop_instructions.filter(|_| !worth.calibrated) else {
        return plain;
    };
    let base_cycles = as_f64(instructions) / RETIRE_WIDTH;
    let high = worth
        .share_beyond(0.0)
        .max(L1_HIT_CYCLES / (L1_HIT_CYCLES + base_cycles));
    memory_split(high, ShareBounds { low: 0.0, high })
}

/// Arithmetic on a memory operand. Up to the time of a hit, which is about that of the unit, the
/// unit is charged; the part beyond is memory.
fn split_memory_or_unit(worth: SampleWorth) -> StallSplit {
    let high = worth.share_beyond(0.0);
    let (memory, low) = if worth.calibrated {
        let low = worth.share_beyond(L1_HIT_CYCLES);
        (low, low)
    } else {
        (high / 2.0, 0.0)
    };
    StallSplit {
        unit: high - memory,
        ..memory_split(memory, ShareBounds { low, high })
    }
}

/// A full store buffer blocks new instructions but lets old ones retire, so the position of the
/// pile shows little. Only what is proven is charged.
fn split_store_buffer(worth: SampleWorth) -> StallSplit {
    let high = worth.share_beyond(0.0);
    let proven = worth.calibrated.then(|| worth.share_beyond(L1_HIT_CYCLES));
    let low = proven.unwrap_or(0.0);
    memory_split(low, ShareBounds { low, high })
}

fn memory_split(memory: f64, memory_bounds: ShareBounds) -> StallSplit {
    StallSplit {
        memory,
        memory_bounds,
        ..StallSplit::default()
    }
}
