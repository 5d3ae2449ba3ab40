//! Summary of all cases.

use super::case::Case;
use super::draw::Draw;
use super::square::{Square, Variance};
use consort_core::stats::{mean, quantile};
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
    pub variance_fast: Shares,
    /// The same by the reference.
    pub variance_reference: Shares,
}

/// Shares of variance, means over squares of programs, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Shares {
    /// Explained by who is slowed down.
    pub victim: Option<f64>,
    /// Explained by who slows down.
    pub co_runner: Option<f64>,
    /// Depends on both.
    pub both: Option<f64>,
}

/// The same programs on the same ground by both engines.
struct Twins {
    fast: Square,
    reference: Square,
}

impl ReferenceSummary {
    /// Of cases that were drawn.
    pub(super) fn of(cases: &[Case], drawn: &[Draw]) -> Self {
        let twins = twins(cases, drawn);
        let all = |of: &dyn Fn(&Twins) -> Option<f64>| {
            mean(&twins.iter().filter_map(of).collect::<Vec<_>>())
        };
        let best = |square: &Square| square.over_random(&square.best_pairing()?);
        let stp: Vec<f64> = cases.iter().map(Case::stp_error).collect();
        let antt: Vec<f64> = cases.iter().map(Case::antt_error).collect();
        let slowdowns: Vec<f64> = cases.iter().flat_map(Case::slowdown_errors).collect();
        let pairs = cases.iter().filter(|case| case.programs.len() == 2).count();
        Self {
            pairs,
            larger: cases.len() - pairs,
            stp_error_mean: mean(&stp),
            stp_error_p95: quantile(&stp, 0.95),
            antt_error_mean: mean(&antt),
            antt_error_p95: quantile(&antt, 0.95),
            slowdown_error_mean: mean(&slowdowns),
            slowdown_error_p95: quantile(&slowdowns, 0.95),
            rank_correlation: all(&|t| t.fast.rank_correlation(&t.reference)),
            best_over_random_fast: all(&|t| best(&t.fast)),
            best_over_random_reference: all(&|t| best(&t.reference)),
            chosen_over_random_reference: all(&|t| {
                t.reference.over_random(&t.fast.best_pairing()?)
            }),
            variance_fast: shares(twins.iter().map(|t| t.fast.variance())),
            variance_reference: shares(twins.iter().map(|t| t.reference.variance())),
        }
    }
}

fn twins(cases: &[Case], drawn: &[Draw]) -> Vec<Twins> {
    let of_draw = |draw: &Draw| {
        let here: Vec<&Case> = cases
            .iter()
            .filter(|case| case.ground == draw.ground)
            .collect();
        let twin = |square: &Vec<usize>| Twins {
            fast: Square::of(&here, square, |case| &case.fast),
            reference: Square::of(&here, square, |case| &case.reference),
        };
        draw.squares.iter().map(twin).collect::<Vec<_>>()
    };
    drawn.iter().flat_map(of_draw).collect()
}

fn shares(variances: impl Iterator<Item = Variance>) -> Shares {
    let all: Vec<Variance> = variances.collect();
    let of = |part: fn(&Variance) -> f64| mean(&all.iter().map(part).collect::<Vec<_>>());
    Shares {
        victim: of(|v| v.victim),
        co_runner: of(|v| v.co_runner),
        both: of(|v| v.both),
    }
}
