//! Share of a pile that is a stall, by suspicion and worth.

use super::ShareBounds;
use super::accesses::DataLevel;
use super::calibrate::{SampleWorth, as_f64};
use crate::Suspicion;
use crate::sampled_processor::{L1_HIT_CYCLES, RETIRE_WIDTH};

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
    /// The split with what is known of where the data are: in the first-level
    /// cache nothing waits for memory, and what seemed to does for the unit that
    /// serves it; what walks along pointers in the second level waits for hits
    /// there, however little its neighbours tell of a pile's length; beyond the
    /// caches of the core the whole of a pile behind an access waits.
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

/// A loop that walks along pointers takes at least the time of one hit per
/// execution, nearly all of it stalled behind the load; and loops in which
/// threads spend much time are rather those that miss.
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

/// Arithmetic on a memory operand: up to the time of a hit, which is also about
/// that of the unit, the unit is charged; what goes beyond is memory.
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

/// A full store buffer keeps new instructions out but lets old ones retire, so
/// where the pile stands says little: only what is proven is charged.
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
