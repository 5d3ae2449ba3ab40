//! Power laws through measured points.

/// y = factor·x^exponent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerLaw {
    /// y at x = 1.
    pub factor: f64,
    /// Steepness of the curve.
    pub exponent: f64,
    /// Largest relative distance of a point from the law.
    pub error: f64,
}

/// The power law of least squares in logarithms through points with positive coordinates; points
/// without are left out, and a single point gives a constant.
#[must_use]
pub fn power_law(points: &[(f64, f64)]) -> Option<PowerLaw> {
    let usable = points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0);
    let logs: Vec<_> = usable.clone().map(|(x, y)| (x.ln(), y.ln())).collect();
    let n = logs.len() as f64;
    if logs.is_empty() {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / n;
    let (mean_x, mean_y) = (mean(|p| p.0), mean(|p| p.1));
    let covariance: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let exponent = if variance > 0.0 {
        covariance / variance
    } else {
        0.0
    };
    let factor = (mean_y - exponent * mean_x).exp();
    let off = |(x, y): &(f64, f64)| (factor * x.powf(exponent) / y - 1.0).abs();
    Some(PowerLaw {
        factor,
        exponent,
        error: usable.map(off).fold(0.0, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_law_is_found() {
        let points: Vec<_> = [16.0, 64.0, 256.0]
            .map(|x: f64| (x, 1.5 * x.powf(0.4)))
            .into();
        let law = power_law(&points).unwrap();
        assert!((law.factor - 1.5).abs() < 1e-9 && (law.exponent - 0.4).abs() < 1e-9);
        assert!(law.error < 1e-9);
        assert_eq!(power_law(&[(0.0, 1.0)]), None);
        assert_eq!(power_law(&[(4.0, 2.0)]).unwrap().exponent, 0.0);
    }
}
