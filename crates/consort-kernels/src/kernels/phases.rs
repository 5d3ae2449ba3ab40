//! `phases`: one thread that changes its character with time.
//!
//! Floating point, integer and memory work take turns of [`KernelSetup::phase`] each.
//! Pitfall: how many units fall into each phase depends on the clock, and so
//! does the checksum; the expected one follows it.

use super::arithmetic::{fp_unit, int_unit};
use super::chase::{Chase, share_bytes};
use crate::kernel::{
    ExpectedClass, Kernel, KernelBuilder, KernelEntry, KernelSetup, make_builders,
};
use crate::tally::PureKernel;
use std::time::{Duration, Instant};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "phases",
    summary: "changes between fp, int and memory work every 250 ms (or as given)",
    stresses: "floating-point units, integer units and memory by turns",
    class: ExpectedClass::Mixed,
    builders,
};

/// The most memory that all threads together chase through: less than `dram`
/// takes, so that the first phase begins soon.
const MEMORY_BYTES: usize = 64 << 20;

/// Returns the time since the kernel was built; tests have their own.
type PhaseClock = Box<dyn FnMut() -> Duration + Send>;

struct PhasesKernel {
    clock: PhaseClock,
    phase: Duration,
    parts: [Box<dyn Kernel>; 3],
    checksums: [u64; 3],
}

impl PhasesKernel {
    fn new(clock: PhaseClock, phase: Duration, memory_bytes: usize) -> Self {
        Self {
            clock,
            phase: phase.max(Duration::from_nanos(1)),
            parts: [
                Box::new(PureKernel::new(fp_unit)),
                Box::new(PureKernel::new(int_unit)),
                Box::new(Chase::new(memory_bytes, 0)),
            ],
            checksums: [0; 3],
        }
    }

    fn part_now(&mut self) -> usize {
        let phases = (self.clock)().as_nanos() / self.phase.as_nanos();
        usize::try_from(phases % 3).unwrap_or(0)
    }
}

fn builders(setup: &KernelSetup) -> Vec<KernelBuilder> {
    let total = setup.caches.llc_bytes.saturating_mul(2).min(MEMORY_BYTES);
    let bytes = share_bytes(total, setup.threads, 4 << 20);
    let phase = setup.phase;
    make_builders(setup, move |_| {
        let start = Instant::now();
        let clock = Box::new(move || start.elapsed());
        Ok(PhasesKernel::new(clock, phase, bytes))
    })
}

fn mix(checksums: [u64; 3]) -> u64 {
    checksums
        .iter()
        .fold(0, |sum: u64, c| sum.rotate_left(21).wrapping_add(*c))
}

impl Kernel for PhasesKernel {
    fn work(&mut self, units: u64) -> u64 {
        for _ in 0..units {
            let part = self.part_now();
            self.checksums[part] = self.parts[part].work(1);
        }
        mix(self.checksums)
    }

    fn expected(&self) -> u64 {
        mix(self.parts.each_ref().map(|part| part.expected()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Its clock advances by one millisecond at each reading.
    fn ticking(phase_ms: u64) -> PhasesKernel {
        let mut now_ms = 0;
        let clock = move || {
            now_ms += 1;
            Duration::from_millis(now_ms - 1)
        };
        PhasesKernel::new(Box::new(clock), Duration::from_millis(phase_ms), 4_096)
    }

    #[test]
    fn every_phase_lasts_its_time() {
        let mut phases = ticking(2);
        let parts: Vec<usize> = (0..8).map(|_| phases.part_now()).collect();
        assert_eq!(parts, [0, 0, 1, 1, 2, 2, 0, 0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn splitting_units_changes_nothing(parts in prop::collection::vec(0_u64..10, 0..5), phase_ms in 1_u64..5) {
            let mut split = ticking(phase_ms);
            for units in &parts {
                split.work(*units);
            }
            let mut whole = ticking(phase_ms);
            let checksum = whole.work(parts.iter().sum());
            prop_assert_eq!(split.work(0), checksum);
            prop_assert_eq!(whole.expected(), checksum);
        }
    }
}
