//! Integer work of a chosen length, for kernels that are about waiting.

use crate::opaque;

/// A dependent chain of `steps` multiplications.
pub(crate) fn spin(seed: u64, steps: u64) -> u64 {
    (0..steps).fold(seed, |x, step| {
        opaque::int(x).wrapping_mul(6_364_136_223_846_793_005) ^ step
    })
}
