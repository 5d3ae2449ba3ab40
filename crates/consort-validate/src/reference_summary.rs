//! Figures of the fast engine beside the reference.

use serde::Serialize;

/// The fast engine beside the reference; errors as shares of the reference's values.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReferenceSummary {
    /// Pairs of programs that were run.
    pub pairs: usize,
    /// Sets of more programs that were run.
    pub larger: usize,
    /// Error of STP, mean.
    pub stp_error_mean: Option<f64>,
    /// Error of STP, 95th percentile.
    pub stp_error_p95: Option<f64>,
    /// Error of ANTT, mean.
    pub antt_error_mean: Option<f64>,
    /// Error of ANTT, 95th percentile.
    pub antt_error_p95: Option<f64>,
    /// Error of slowdowns, mean.
    pub slowdown_error_mean: Option<f64>,
    /// Error of slowdowns, 95th percentile.
    pub slowdown_error_p95: Option<f64>,
    /// Rank correlation of the co-runners of a victim, mean over victims.
    pub rank_correlation: Option<f64>,
    /// STP of the best pairing over that of a random one, both by the fast engine.
    pub best_over_random_fast: Option<f64>,
    /// The same by the reference.
    pub best_over_random_reference: Option<f64>,
    /// STP of the pairing that the fast engine chooses over that of a random one, by the reference.
    pub chosen_over_random_reference: Option<f64>,
    /// Shares of the variance of slowdowns by the fast engine.
    pub variance_fast: VarianceShares,
    /// The same by the reference.
    pub variance_reference: VarianceShares,
}

/// Shares of variance, means over squares of programs, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct VarianceShares {
    /// Explained by who is slowed down.
    pub victim: Option<f64>,
    /// Explained by who slows down.
    pub co_runner: Option<f64>,
    /// Depends on both.
    pub both: Option<f64>,
}
