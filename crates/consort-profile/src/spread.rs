//! Errors of sampled figures.

/// Quantiles of Student's t for two-sided 95 percent, by degrees of freedom from 1 (NIST/SEMATECH
/// e-Handbook of Statistical Methods, 1.3.6.7.2).
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same of the normal distribution, for more.
const NORMAL: f64 = 1.960;

/// Half width of the 95 percent interval of the mean of `values`, which are taken to be
/// independent; 0 of less than two.
pub(crate) fn half_width(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let student = STUDENT.get(values.len() - 2).unwrap_or(&NORMAL);
    student * (squares / (n - 1.0) / n).sqrt()
}

#[cfg(test)]
mod tests {
    use super::half_width;

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Mean 2, standard deviation 1, three values: 4.303/sqrt(3).
        assert!((half_width(&[1.0, 2.0, 3.0]) - 4.303 / 3_f64.sqrt()).abs() < 1e-9);
        assert_eq!(half_width(&[5.0]), 0.0);
        let many: Vec<_> = (0..1000).map(|i| f64::from(i % 2)).collect();
        assert!((half_width(&many) - 1.96 * 0.5 / 1000_f64.sqrt()).abs() < 1e-4);
    }
}
