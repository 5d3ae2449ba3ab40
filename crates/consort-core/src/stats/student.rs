//! Quantiles of Student's t distribution.

/// Upper 97.5 percent points for 1 to 29 degrees of freedom, as published in
/// the NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
const TABLE: [f64; 29] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045,
];

/// The 97.5 percent point of the normal distribution.
const NORMAL: f64 = 1.959_963_984_540_054;

/// The 97.5 percent point of Student's t distribution, which bounds a two-sided
/// 95 percent interval; `None` for 0 degrees of freedom.
///
/// Up to 29 degrees it is the published table; beyond, the expansion about the
/// normal quantile in M. Abramowitz and I. Stegun, "Handbook of Mathematical
/// Functions", 26.7.5. Nothing but sums and products, so the bits are the same
/// on every host.
pub fn t_975(degrees: usize) -> Option<f64> {
    let index = degrees.checked_sub(1)?;
    Some(
        TABLE
            .get(index)
            .copied()
            .unwrap_or_else(|| expansion(degrees as f64)),
    )
}

fn expansion(degrees: f64) -> f64 {
    let x = NORMAL;
    let square = x * x;
    let g1 = x * (square + 1.0) / 4.0;
    let g2 = x * ((5.0 * square + 16.0) * square + 3.0) / 96.0;
    let g3 = x * (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0;
    x + (g1 + (g2 + g3 / degrees) / degrees) / degrees
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, StudentsT};

    fn exact(degrees: usize) -> f64 {
        let distribution = StudentsT::new(0.0, 1.0, degrees as f64).unwrap();
        distribution.inverse_cdf(0.975)
    }

    #[test]
    fn the_table_is_right_to_its_last_digit() {
        for degrees in 1..=29 {
            let error = (t_975(degrees).unwrap() - exact(degrees)).abs();
            assert!(error <= 5.5e-4, "{degrees} degrees: off by {error}");
        }
    }

    #[test]
    fn the_expansion_is_right_to_six_digits() {
        for degrees in [30, 31, 40, 60, 99, 1000] {
            let error = (t_975(degrees).unwrap() - exact(degrees)).abs();
            assert!(error <= 2e-6, "{degrees} degrees: off by {error}");
        }
    }

    #[test]
    fn more_runs_never_widen_the_interval() {
        assert_eq!(t_975(0), None);
        for degrees in 1..200 {
            assert!(t_975(degrees + 1) < t_975(degrees), "{degrees} degrees");
        }
    }
}
