//! `vector`: packed double-precision arithmetic.
//!
//! Portable code over arrays of lanes, which optimised builds turn into packed
//! instructions of the target's baseline (SSE2 on x86_64, Neon on aarch64).
//! Build with `-C target-cpu=native` for wider ones. An unoptimised build does
//! the same arithmetic on scalars.

use super::fp::{FACTOR, mix, start};
use crate::kernel::{ExpectedClass, KernelEntry};
use crate::tally::PureKernel;
use std::hint::black_box;

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "vector",
    summary: "packed double additions and multiplications, auto-vectorised to the build's baseline",
    stresses: "vector units",
    class: ExpectedClass::Fp,
    seats: |setup| PureKernel::builders(setup, unit),
};

/// Steps per unit; each does one addition and one multiplication per lane.
const STEPS: u64 = 2_000;

/// Lanes: eight chains of two in 128-bit registers, two of eight in 512-bit ones.
const LANES: usize = 16;

fn unit(seed: u64) -> u64 {
    let factor = black_box(FACTOR);
    let mut lanes: [f64; LANES] = black_box(std::array::from_fn(|i| start(seed, i)));
    for _ in 0..STEPS {
        for lane in &mut lanes {
            *lane = *lane * factor + 1.0;
        }
    }
    mix(&lanes)
}

#[cfg(test)]
mod tests {
    use super::unit;

    /// Values from a transcription of the formula in Python.
    #[test]
    fn known_results() {
        assert_eq!(
            [unit(0), unit(255)],
            [0x753e_eaa8_d8a2_c314, 0xc04e_bfad_0bbf_2c69]
        );
    }
}
