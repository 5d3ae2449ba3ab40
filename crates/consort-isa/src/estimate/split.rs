//! Share of a pile that is a stall, by suspicion and worth.

use super::Bounds;
use super::calibrate::{Worth, as_f64};
use super::reach::Level;
use crate::Suspicion;
use crate::host::{L1_HIT_CYCLES, RETIRE_WIDTH};

/// Cycles from a load to its use when it hits the second level: 12 to 14 on AMD Zen, 14 on Intel from
/// Skylake-SP on (their optimisation guides).
const L2_HIT_CYCLES: f64 = 14.0;

/// Cycles that any taken branch may cost the front end without a miss.
const REDIRECT_CYCLES: f64 = 1.0;

/// Shares of the time of the samples under one suspicion; what is left to 1 is base.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Split {
    pub(super) memory: f64,
    pub(super) unit: f64,
    pub(super) front_end: f64,
    pub(super) memory_bounds: Bounds,
}

/// Splits the time of the samples under one suspicion. `loop_instructions` is the length of the block
/// if it is a loop by itself.
pub(super) fn split(suspicion: Suspicion, worth: Worth, loop_instructions: Option<usize>) -> Split {
    match suspicion {
        Suspicion::None => Split::default(),
        Suspicion::Memory { chained: true } => chained(worth, loop_instructions),
        Suspicion::Memory { chained: false } => memory(worth),
        Suspicion::MemoryOrUnit => memory_or_unit(worth),
        Suspicion::StoreBuffer => store_buffer(worth),
        Suspicion::Unit => Split {
            unit: worth.share_beyond(0.0),
            ..Split::default()
        },
        Suspicion::FrontEnd => Split {
            front_end: worth.middle_beyond(REDIRECT_CYCLES),
            ..Split::default()
        },
    }
}

impl Split {
    /// The split with what is known of where the data are: in the first-level
    /// cache nothing waits for memory, and what seemed to does for the unit that
    /// serves it; what walks along pointers in the second level waits for hits
    /// there, however little its neighbours tell of a pile's length; beyond the
    /// caches of the core the whole of a pile behind an access waits.
    pub(super) fn at(self, level: Level, suspicion: Suspicion, worth: Worth) -> Self {
        match level {
            Level::Second { misses } if suspicion == (Suspicion::Memory { chained: true }) => {
                let longer = misses * (L2_HIT_CYCLES - L1_HIT_CYCLES);
                let missed = worth.share_beyond(0.0) * longer / (L1_HIT_CYCLES + longer);
                let memory = if worth.calibrated {
                    self.memory.max(missed)
                } else {
                    missed
                };
                Self { memory, ..self }
            }
            Level::Unknown | Level::Second { .. } => self,
            Level::First => Self {
                memory: 0.0,
                unit: self.unit + self.memory,
                memory_bounds: Bounds::default(),
                ..self
            },
            Level::Beyond if suspicion.is_of_memory() => {
                of_memory(worth.share_beyond(0.0), self.memory_bounds)
            }
            Level::Beyond => self,
        }
    }
}

impl Worth {
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

fn memory(worth: Worth) -> Split {
    let high = worth.share_beyond(0.0);
    if !worth.calibrated {
        let low = 0.0;
        return of_memory(high / 2.0, Bounds { low, high });
    }
    let low = worth.share_beyond(L1_HIT_CYCLES);
    of_memory(worth.middle_beyond(L1_HIT_CYCLES), Bounds { low, high })
}

/// A loop that walks along pointers takes at least the time of one hit per
/// execution, nearly all of it stalled behind the load; and loops in which
/// threads spend much time are rather those that miss.
fn chained(worth: Worth, loop_instructions: Option<usize>) -> Split {
    let plain = memory(worth);
    let Some(instructions) = loop_instructions.filter(|_| !worth.calibrated) else {
        return plain;
    };
    let base_cycles = as_f64(instructions) / RETIRE_WIDTH;
    let high = worth
        .share_beyond(0.0)
        .max(L1_HIT_CYCLES / (L1_HIT_CYCLES + base_cycles));
    of_memory(high, Bounds { low: 0.0, high })
}

/// Arithmetic on a memory operand: up to the time of a hit, which is also about
/// that of the unit, the unit is charged; what goes beyond is memory.
fn memory_or_unit(worth: Worth) -> Split {
    let high = worth.share_beyond(0.0);
    let (memory, low) = if worth.calibrated {
        let low = worth.share_beyond(L1_HIT_CYCLES);
        (low, low)
    } else {
        (high / 2.0, 0.0)
    };
    Split {
        unit: high - memory,
        ..of_memory(memory, Bounds { low, high })
    }
}

/// A full store buffer keeps new instructions out but lets old ones retire, so
/// where the pile stands says little: only what is proven is charged.
fn store_buffer(worth: Worth) -> Split {
    let high = worth.share_beyond(0.0);
    let proven = worth.calibrated.then(|| worth.share_beyond(L1_HIT_CYCLES));
    let low = proven.unwrap_or(0.0);
    of_memory(low, Bounds { low, high })
}

fn of_memory(memory: f64, memory_bounds: Bounds) -> Split {
    Split {
        memory,
        memory_bounds,
        ..Split::default()
    }
}
