//! Facts about this host's processor that the estimate needs.

use crate::topology::{CacheKind, DiscoveredCache, caches};
use consort_core::PuId;
use consort_isa::SampledProcessor;
use std::path::Path;
use std::sync::OnceLock;

/// Number of multiplications in one trial; each needs the result of the one before.
const CHAIN: u64 = 4_096;
/// Cycles that an integer multiplication takes, on every Intel core from 2008 and every AMD Zen
/// (their optimisation guides).
const MULTIPLY_CYCLES: f64 = 3.0;
/// Number of trials; the fastest counts, since disturbances only ever add.
const TRIALS: usize = 32;

/// The caches of the first PU below `root`, and the speed of this processor, measured once in
/// about 0.2 ms.
pub(super) fn detect_processor(root: &Path) -> SampledProcessor {
    static CYCLES_PER_NS: OnceLock<Option<f64>> = OnceLock::new();
    let caches = caches(root, &PuId(0).into());
    let data = |level| {
        let of_level = |c: &&DiscoveredCache| c.level == level && c.kind != CacheKind::Instruction;
        caches.iter().find(of_level)?.size_bytes
    };
    SampledProcessor {
        l1_bytes: data(1),
        l2_bytes: data(2).or(data(1)),
        cycles_per_ns: *CYCLES_PER_NS.get_or_init(cycles_per_ns),
    }
}

#[cfg(target_arch = "x86_64")]
fn cycles_per_ns() -> Option<f64> {
    use std::time::{Duration, Instant};
    let trial = |_| {
        let start = Instant::now();
        multiply(CHAIN);
        start.elapsed()
    };
    let fastest = (0..TRIALS)
        .map(trial)
        .min()
        .filter(|&t| t > Duration::ZERO)?;
    Some(CHAIN as f64 * MULTIPLY_CYCLES / fastest.as_nanos() as f64)
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles_per_ns() -> Option<f64> {
    None
}

/// Multiplies `times` times, one after the other: in assembly, since a compiler without
/// optimisation puts memory in between and one with optimisation leaves them out.
#[cfg(target_arch = "x86_64")]
fn multiply(times: u64) {
    // SAFETY: only the named registers and the flags are touched.
    unsafe {
        std::arch::asm!(
            "2:",
            "imul {x}, {x}", "imul {x}, {x}", "imul {x}, {x}", "imul {x}, {x}",
            "imul {x}, {x}", "imul {x}, {x}", "imul {x}, {x}", "imul {x}, {x}",
            "dec {n}", "jnz 2b",
            x = inout(reg) 3_u64 => _, n = inout(reg) (times / 8).max(1) => _,
            options(nomem, nostack)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_is_that_of_a_processor() {
        if cfg!(target_arch = "x86_64") {
            let speed = cycles_per_ns().unwrap();
            assert!((0.2..10.0).contains(&speed), "{speed} cycles per ns");
        }
    }
}
