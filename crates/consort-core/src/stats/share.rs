//! Intervals of shares.

/// Quantile of the normal distribution that leaves 2.5 percent above.
const Z_975: f64 = 1.959_963_984_540_054;

/// The 95 percent confidence interval of a share that was found among `n` draws, from 0 to 1: Wilson
/// ("Probable Inference, the Law of Succession, and Statistical Inference", 1927). It holds for few
/// draws and for shares near 0 and 1; `None` without draws. Draws that come in runs, as the phases of
/// a program do, vary more.
pub fn share_interval(share: f64, n: u64) -> Option<(f64, f64)> {
    if n == 0 || !(0.0..=1.0).contains(&share) {
        return None;
    }
    let (n, squared) = (n as f64, Z_975 * Z_975);
    let centre = share + squared / (2.0 * n);
    let variance = share * (1.0 - share) / n + squared / (4.0 * n * n);
    let half = Z_975 * libm::sqrt(variance);
    let whole = 1.0 + squared / n;
    let (low, high) = ((centre - half) / whole, (centre + half) / whole);
    Some((low.clamp(0.0, share), high.clamp(share, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_interval_of_the_literature() {
        // Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I,
        // method 3: 81 of 263.
        let (low, high) = share_interval(81.0 / 263.0, 263).unwrap();
        assert!(
            (low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5,
            "{low} {high}"
        );
    }

    #[test]
    fn without_draws_there_is_no_interval() {
        assert_eq!(share_interval(0.5, 0), None);
        assert_eq!(share_interval(f64::NAN, 5), None);
    }

    proptest! {
        #[test]
        fn the_share_is_inside_and_more_draws_narrow(share in 0.0..=1.0, n in 1u64..10_000) {
            let (low, high) = share_interval(share, n).unwrap();
            prop_assert!((0.0..=share).contains(&low) && (share..=1.0).contains(&high));
            let (more_low, more_high) = share_interval(share, 4 * n).unwrap();
            prop_assert!(more_high - more_low < high - low);
        }
    }
}
