//! `fp`: scalar double-precision additions and multiplications.

use crate::kernel::{ExpectedClass, KernelEntry};
use crate::opaque;
use crate::tally::{PERIOD, PureKernel};

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "fp",
    summary: "scalar double additions and multiplications in eight independent chains",
    stresses: "floating-point units",
    class: ExpectedClass::Fp,
    seats: |setup| PureKernel::builders(setup, unit),
};

/// Steps per unit; each does one addition and one multiplication per chain.
const STEPS: u64 = 2_000;

/// Below 1, so that chains neither overflow nor vanish into denormals; near 1,
/// so that after a unit they still differ by where they began.
pub(crate) const FACTOR: f64 = 0.9995;

/// Eight chains keep two pipelines of four cycles' latency busy; each is made
/// opaque at every step, or a compiler would pack them into vectors.
pub(crate) fn unit(seed: u64) -> u64 {
    let factor = opaque::fp(FACTOR);
    let mut chains: [f64; 8] = std::array::from_fn(|i| start(seed, i));
    for _ in 0..STEPS {
        for chain in &mut chains {
            *chain = opaque::fp(*chain * factor + 1.0);
        }
    }
    mix(&chains)
}

/// Start of chain `i`: small whole numbers, exact in a double.
pub(crate) fn start(seed: u64, i: usize) -> f64 {
    let seed = u8::try_from(seed % PERIOD).unwrap_or(u8::MAX);
    f64::from(seed) + f64::from(u8::try_from(i).unwrap_or(u8::MAX)) * 0.25
}

/// The bits of all values, in an order-dependent sum.
pub(crate) fn mix(values: &[f64]) -> u64 {
    values.iter().fold(0, |sum: u64, v| {
        sum.rotate_left(5).wrapping_add(v.to_bits())
    })
}

#[cfg(test)]
mod tests {
    use super::unit;

    /// Values from a transcription of the formula in Python.
    #[test]
    fn known_results() {
        assert_eq!(
            [unit(0), unit(255)],
            [0x4ef9_c350_4ef0_32df, 0x3d14_c941_724d_27ad]
        );
    }
}
