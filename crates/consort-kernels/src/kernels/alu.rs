//! `alu`: independent integer additions, as many at a time as a core has units for.
//!
//! Beside a copy of itself on the same core it takes nearly twice as long, which `int` does not:
//! there a chain leaves units free.

use crate::kernel::{ExpectedClass, KernelEntry};
use crate::opaque;
use crate::tally::PureKernel;

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "alu",
    summary: "additions in eight independent chains; no floating point, no memory",
    stresses: "all integer units",
    class: ExpectedClass::Int,
    seats: |setup| PureKernel::builders(setup, unit),
};

/// Steps per unit; each does one addition per chain.
const STEPS: u64 = 8_000;

/// Eight chains: at least as many as cores of today have integer units, and few enough to stay in
/// registers.
pub(crate) fn unit(seed: u64) -> u64 {
    let mut chains: [u64; 8] = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| seed + i);
    let step = opaque::int(seed | 1);
    for _ in 0..STEPS {
        for chain in &mut chains {
            *chain = opaque::int(chain.wrapping_add(step));
        }
    }
    chains
        .iter()
        .fold(0, |sum: u64, chain| sum.rotate_left(5).wrapping_add(*chain))
}

#[cfg(test)]
mod tests {
    use super::unit;

    /// Values from a transcription of the formula in Python.
    #[test]
    fn known_results() {
        assert_eq!(
            [unit(0), unit(255)],
            [0x0001_0210_c853_1c07, 0x0101_16ad_af8b_ea66]
        );
    }
}
