//! Elementary functions that give the same bits on every host.
//!
//! The standard library calls the host's libm, whose last bits differ between
//! systems; these are computed by the same portable code everywhere.

/// `e` to the power `x`.
#[inline]
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// 2 to the power `x`.
#[inline]
pub fn exp2(x: f64) -> f64 {
    libm::exp2(x)
}

/// Natural logarithm.
#[inline]
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// Logarithm to the base 2.
#[inline]
pub fn log2(x: f64) -> f64 {
    libm::log2(x)
}

/// A `base` that is not negative to the power `exponent`, to a relative 10⁻¹⁶ times the logarithm
/// of the result: the exact power takes 1.6 times as long.
#[inline]
pub fn pow(base: f64, exponent: f64) -> f64 {
    if exponent == 0.0 {
        return 1.0;
    }
    exp2(exponent * log2(base))
}

/// The value at `x` of a curve through points at rising positive places: linear in the logarithm
/// of the place between two, level beyond the last.
pub fn interpolate(places: &[f64], points: &[f64], x: f64) -> f64 {
    let after = places.partition_point(|&place| place <= x);
    match (after.checked_sub(1), places.get(after)) {
        (None, _) => points[0],
        (Some(before), None) => points[before],
        (Some(before), Some(&next)) => {
            let octaves = match next / places[before] {
                2.0 => 1.0,
                ratio => log2(ratio),
            };
            let share = log2(x / places[before]) / octaves;
            points[before] + share * (points[after] - points[before])
        }
    }
}
