//! Two limits on a thread that hide each other or take turns.

/// Time that two limits take, of which each may hide the other: between the longer and their sum by
/// how `uneven` a program is; see [`IlpSpec::unevenness`](crate::program::IlpSpec::unevenness).
pub(super) fn overlapped_time(a: f64, b: f64, uneven: f64) -> f64 {
    let apart = a - b;
    0.5 * (a + b + (apart * apart + 4.0 * uneven * a * b).sqrt())
}

/// Unevenness of two limits that take so much time together, 0 to 1: the inverse of [`overlapped_time`].
pub(super) fn unevenness(a: f64, b: f64, together: f64) -> f64 {
    let product = (a * b).max(f64::MIN_POSITIVE);
    (1.0 - together * (a + b - together) / product).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_two_limits_take_tells_how_uneven_they_are(
            a in 0.1f64..2.0,
            b in 0.1f64..2.0,
            uneven in 0.0f64..=1.0,
        ) {
            let together = overlapped_time(a, b, uneven);
            prop_assert!(together >= a.max(b) * (1.0 - 1e-12) && together <= (a + b) * (1.0 + 1e-12));
            prop_assert!((unevenness(a, b, together) - uneven).abs() < 1e-6);
        }
    }
}
