//! Making the summary of all cases.

use super::case::Case;
use super::draw::Draw;
use super::square::{Square, Variance};
use crate::reference_summary::{ReferenceSummary, Shares};
use consort_core::stats::{mean, quantile};

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
