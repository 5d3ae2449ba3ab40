//! Elementary functions that give the same bits on every host.
//!
//! The standard library calls the host's libm, whose last bits differ between
//! systems; these are computed by the same portable code everywhere.

/// Logarithm to the base 2.
pub(crate) fn log2(x: f64) -> f64 {
    libm::log2(x)
}
