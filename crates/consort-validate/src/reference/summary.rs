//! Making the summary of all cases.

use super::case::EngineCase;
use super::program_draw::ProgramDraw;
use super::slowdown_matrix::{SlowdownMatrix, VarianceSplit};
use crate::reference_summary::{ReferenceSummary, VarianceShares};
use consort_core::stats::{mean, quantile};

/// The same programs on the same ground by both engines.
struct EngineMatrices {
    fast: SlowdownMatrix,
    reference: SlowdownMatrix,
}

impl ReferenceSummary {
    /// Of cases that were drawn.
    pub(super) fn from_cases(cases: &[EngineCase], drawn: &[ProgramDraw]) -> Self {
        let twins = matrices_by_draw(cases, drawn);
        let all = |of: &dyn Fn(&EngineMatrices) -> Option<f64>| {
            mean(&twins.iter().filter_map(of).collect::<Vec<_>>())
        };
        let best = |square: &SlowdownMatrix| square.stp_over_random(&square.best_pairing()?);
        let stp: Vec<f64> = cases.iter().map(EngineCase::stp_error).collect();
        let antt: Vec<f64> = cases.iter().map(EngineCase::antt_error).collect();
        let slowdowns: Vec<f64> = cases.iter().flat_map(EngineCase::slowdown_errors).collect();
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
                t.reference.stp_over_random(&t.fast.best_pairing()?)
            }),
            variance_fast: mean_shares(twins.iter().map(|t| t.fast.variance())),
            variance_reference: mean_shares(twins.iter().map(|t| t.reference.variance())),
        }
    }
}

fn matrices_by_draw(cases: &[EngineCase], drawn: &[ProgramDraw]) -> Vec<EngineMatrices> {
    let of_draw = |draw: &ProgramDraw| {
        let here: Vec<&EngineCase> = cases
            .iter()
            .filter(|case| case.ground == draw.ground)
            .collect();
        let twin = |square: &Vec<usize>| EngineMatrices {
            fast: SlowdownMatrix::from_cases(&here, square, |case| &case.fast),
            reference: SlowdownMatrix::from_cases(&here, square, |case| &case.reference),
        };
        draw.squares.iter().map(twin).collect::<Vec<_>>()
    };
    drawn.iter().flat_map(of_draw).collect()
}

fn mean_shares(variances: impl Iterator<Item = VarianceSplit>) -> VarianceShares {
    let all: Vec<VarianceSplit> = variances.collect();
    let of = |part: fn(&VarianceSplit) -> f64| mean(&all.iter().map(part).collect::<Vec<_>>());
    VarianceShares {
        victim: of(|v| v.victim),
        co_runner: of(|v| v.co_runner),
        both: of(|v| v.both),
    }
}
