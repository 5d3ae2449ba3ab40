//! `branchy`: branches that depend on data no predictor knows.

use crate::kernel::{ExpectedClass, KernelEntry};
use crate::opaque;
use crate::tally::PureKernel;

pub(crate) const ENTRY: KernelEntry = KernelEntry {
    name: "branchy",
    summary: "branches on the bits of a pseudo-random stream, half of them taken",
    stresses: "branch predictors",
    class: ExpectedClass::Int,
    seats: |setup| PureKernel::builders(setup, unit),
};

/// Branches on data per unit.
const STEPS: u64 = 4_000;

/// Each side is opaque, or a compiler would compute both and select without a
/// branch.
fn unit(seed: u64) -> u64 {
    let mut stream = opaque::int(seed) + 1;
    let mut sum = 0_u64;
    for _ in 0..STEPS {
        stream = next(stream);
        sum = if stream >> 63 == 1 {
            opaque::int(sum.wrapping_mul(3))
        } else {
            opaque::int(sum ^ (stream >> 7))
        };
    }
    sum
}

/// Knuth's 64-bit linear congruential generator (MMIX), whose highest bit has
/// the full period of 2^64.
fn next(stream: u64) -> u64 {
    stream
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

#[cfg(test)]
mod tests {
    use super::{STEPS, next, unit};

    /// Values from a transcription of the formula in Python.
    #[test]
    fn known_results() {
        assert_eq!(
            [unit(0), unit(255)],
            [0x87ed_b6e7_827c_7d7f, 0xe637_902a_c2cd_6a06]
        );
    }

    #[test]
    fn about_half_the_branches_are_taken() {
        let mut stream = 1;
        let taken = (0..STEPS).filter(|_| {
            stream = next(stream);
            stream >> 63 == 1
        });
        let share = taken.count() as f64 / STEPS as f64;
        assert!((0.45..0.55).contains(&share), "{share}");
    }
}
