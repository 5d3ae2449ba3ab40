//! `int`: integer arithmetic, partly a dependent chain, partly independent.

use crate::kernel::{ExpectedClass, KernelEntry};
use crate::opaque;
use crate::tally::PureKernel;

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "int",
    summary: "adds, shifts, rotates and multiplies of integers; no floating point, no memory",
    stresses: "integer units",
    class: ExpectedClass::Int,
    seats: |setup| PureKernel::builders(setup, unit),
};

/// Steps per unit.
const STEPS: u64 = 8_000;

/// An odd multiplier with well-spread bits: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// One chain that each step waits for, and three lanes that do not wait for
/// each other.
pub(crate) fn unit(seed: u64) -> u64 {
    let mut chain = opaque::int(seed) | 1;
    let mut lanes = [seed, seed ^ 0x5555, seed.wrapping_add(77)];
    for step in 0..STEPS {
        chain = chain.wrapping_mul(MULTIPLIER).rotate_left(23) ^ step;
        lanes[0] = opaque::int(lanes[0].wrapping_add(step ^ 0x33));
        lanes[1] = opaque::int(lanes[1].rotate_left(7) ^ step);
        lanes[2] = opaque::int((lanes[2] >> 1).wrapping_add(step << 3));
    }
    lanes
        .iter()
        .fold(chain, |sum, lane| sum.wrapping_add(*lane))
}

#[cfg(test)]
mod tests {
    use super::unit;

    /// Values from a transcription of the formula in Python.
    #[test]
    fn known_results() {
        assert_eq!(
            [unit(0), unit(255)],
            [0xdd41_a55c_889b_e843, 0xaf3d_60b8_953c_7274]
        );
    }
}
