//! `int`, `alu`, `fp` and `vector`: arithmetic in registers.

use crate::kernel::{ExpectedClass, KernelEntry};
use crate::opaque;
use crate::tally::{PERIOD, PureKernel};
use std::hint::black_box;

/// `int`: integer arithmetic, partly a dependent chain, partly independent.
pub(crate) const INT: KernelEntry = KernelEntry {
    name: "int",
    summary: "adds, shifts, rotates and multiplies of integers; no floating point, no memory",
    stresses: "integer units",
    class: ExpectedClass::Int,
    builders: |setup| PureKernel::builders(setup, int_unit),
};

/// `alu`: independent integer additions. With a copy of itself on the same core it takes nearly
/// twice as long, which `int` does not: there a chain leaves units free.
pub(crate) const ALU: KernelEntry = KernelEntry {
    name: "alu",
    summary: "additions in eight independent chains; no floating point, no memory",
    stresses: "all integer units",
    class: ExpectedClass::Int,
    builders: |setup| PureKernel::builders(setup, alu_unit),
};

/// `fp`: scalar double-precision additions and multiplications.
pub(crate) const FP: KernelEntry = KernelEntry {
    name: "fp",
    summary: "scalar double additions and multiplications in eight independent chains",
    stresses: "floating-point units",
    class: ExpectedClass::Fp,
    builders: |setup| PureKernel::builders(setup, fp_unit),
};

/// `vector`: packed double-precision arithmetic. Optimised builds turn the portable code into
/// packed instructions of the target's baseline (SSE2 on x86_64, Neon on aarch64); build with
/// `-C target-cpu=native` for wider ones. An unoptimised build does the same arithmetic on scalars.
pub(crate) const VECTOR: KernelEntry = KernelEntry {
    name: "vector",
    summary: "packed double additions and multiplications, auto-vectorised to the build's baseline",
    stresses: "vector units",
    class: ExpectedClass::Fp,
    builders: |setup| PureKernel::builders(setup, vector_unit),
};

/// Steps per unit of the integer kernels.
const INT_STEPS: u64 = 8_000;
/// Steps per unit of the floating-point kernels; each does one addition and one multiplication per
/// chain or lane.
const FP_STEPS: u64 = 2_000;

/// An odd multiplier with well-spread bits: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Below 1, so that chains neither overflow nor vanish into denormals; near 1, so that after a unit
/// they still differ by where they began.
const FACTOR: f64 = 0.9995;

/// Lanes: eight chains of two in 128-bit registers, two of eight in 512-bit ones.
const LANES: usize = 16;

/// One chain that each step waits for, and three lanes that do not wait for each other.
pub(super) fn int_unit(seed: u64) -> u64 {
    let mut chain = opaque::int(seed) | 1;
    let mut lanes = [seed, seed ^ 0x5555, seed.wrapping_add(77)];
    for step in 0..INT_STEPS {
        chain = chain.wrapping_mul(MULTIPLIER).rotate_left(23) ^ step;
        lanes[0] = opaque::int(lanes[0].wrapping_add(step ^ 0x33));
        lanes[1] = opaque::int(lanes[1].rotate_left(7) ^ step);
        lanes[2] = opaque::int((lanes[2] >> 1).wrapping_add(step << 3));
    }
    lanes
        .iter()
        .fold(chain, |sum, lane| sum.wrapping_add(*lane))
}

/// Eight chains: at least as many as cores of today have integer units, and few enough to stay in
/// registers.
fn alu_unit(seed: u64) -> u64 {
    let mut chains: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| seed + i);
    let step = opaque::int(seed | 1);
    for _ in 0..INT_STEPS {
        for chain in &mut chains {
            *chain = opaque::int(chain.wrapping_add(step));
        }
    }
    chains
        .iter()
        .fold(0, |sum: u64, chain| sum.rotate_left(5).wrapping_add(*chain))
}

/// Eight chains keep two pipelines of four cycles' latency busy; each is made opaque at every step,
/// or a compiler would pack them into vectors.
pub(super) fn fp_unit(seed: u64) -> u64 {
    let factor = opaque::fp(FACTOR);
    let mut chains: [f64; 8] = std::array::from_fn(|i| start_value(seed, i));
    for _ in 0..FP_STEPS {
        for chain in &mut chains {
            *chain = opaque::fp(*chain * factor + 1.0);
        }
    }
    mix_bits(&chains)
}

fn vector_unit(seed: u64) -> u64 {
    let factor = black_box(FACTOR);
    let mut lanes: [f64; LANES] = black_box(std::array::from_fn(|i| start_value(seed, i)));
    for _ in 0..FP_STEPS {
        for lane in &mut lanes {
            *lane = *lane * factor + 1.0;
        }
    }
    mix_bits(&lanes)
}

/// Start of chain `i`: small quarters, exact in a double.
fn start_value(seed: u64, i: usize) -> f64 {
    let seed = u8::try_from(seed % PERIOD).unwrap_or(u8::MAX);
    f64::from(seed) + f64::from(u8::try_from(i).unwrap_or(u8::MAX)) * 0.25
}

/// The bits of all values, in an order-dependent sum.
fn mix_bits(values: &[f64]) -> u64 {
    values.iter().fold(0, |sum: u64, v| {
        sum.rotate_left(5).wrapping_add(v.to_bits())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_match_a_transcription_in_python() {
        let ends = |unit: fn(u64) -> u64| [unit(0), unit(255)];
        assert_eq!(
            ends(int_unit),
            [0xdd41_a55c_889b_e843, 0xaf3d_60b8_953c_7274]
        );
        assert_eq!(
            ends(alu_unit),
            [0x0001_0210_c853_1c07, 0x0101_16ad_af8b_ea66]
        );
        assert_eq!(
            ends(fp_unit),
            [0x4ef9_c350_4ef0_32df, 0x3d14_c941_724d_27ad]
        );
        assert_eq!(
            ends(vector_unit),
            [0x753e_eaa8_d8a2_c314, 0xc04e_bfad_0bbf_2c69]
        );
    }
}
