//! Programs together on one part of a machine, by both engines.

use consort_core::stats::mean;

/// Programs that run together, and by how much each is slower than alone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EngineCase {
    /// Number of the ground.
    pub(super) ground: usize,
    /// Numbers of the programs, by place.
    pub(super) programs: Vec<usize>,
    /// Slowdowns by the fast engine.
    pub(super) fast: Vec<f64>,
    /// Slowdowns by the reference.
    pub(super) reference: Vec<f64>,
}

/// System throughput of these slowdowns (Eyerman and Eeckhout, IEEE Micro 2008).
pub(super) fn stp(slowdowns: &[f64]) -> f64 {
    slowdowns.iter().map(|slowdown| 1.0 / slowdown).sum()
}

/// Average normalised turnaround time of these slowdowns (the same source).
pub(super) fn antt(slowdowns: &[f64]) -> f64 {
    mean(slowdowns).unwrap_or(f64::NAN)
}

impl EngineCase {
    /// By how much the fast engine's STP is off, as a share of the reference's.
    pub(super) fn stp_error(&self) -> f64 {
        relative_error(stp(&self.fast), stp(&self.reference))
    }

    /// By how much the fast engine's ANTT is off, as a share of the reference's.
    pub(super) fn antt_error(&self) -> f64 {
        relative_error(antt(&self.fast), antt(&self.reference))
    }

    /// By how much each of the fast engine's slowdowns is off, as a share of the reference's.
    pub(super) fn slowdown_errors(&self) -> impl Iterator<Item = f64> {
        let both = self.fast.iter().zip(&self.reference);
        both.map(|(fast, reference)| relative_error(*fast, *reference))
    }

    /// The largest of [`EngineCase::slowdown_errors`], and its place.
    pub(super) fn worst_slowdown_error(&self) -> (usize, f64) {
        let errors = self.slowdown_errors().enumerate();
        errors.fold((0, 0.0), |worst, (place, error)| match error > worst.1 {
            true => (place, error),
            false => worst,
        })
    }
}

fn relative_error(value: f64, truth: f64) -> f64 {
    (value / truth - 1.0).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shares_of_the_reference() {
        let case = EngineCase {
            ground: 0,
            programs: vec![0, 1],
            fast: vec![1.5, 2.0],
            reference: vec![2.0, 2.0],
        };
        // 1/1.5 + 1/2 against 1, and 1.75 against 2.
        assert!((case.stp_error() - 1.0 / 6.0).abs() < 1e-12);
        assert!((case.antt_error() - 0.125).abs() < 1e-12);
        assert_eq!(case.slowdown_errors().collect::<Vec<_>>(), [0.25, 0.0]);
        assert_eq!(case.worst_slowdown_error(), (0, 0.25));
    }
}
