//! Strangers in a thread's branch predictor.
//!
//! Threads that share a predictor take entries from each other. How many a thread takes per
//! instruction follows from the predictor's kind ([`BranchModel::insertions`]); what another loses
//! by that follows from its program alone ([`BranchSpec::shared_mpki`]). Between the two are only
//! rates: insertions of others per second, over one's own branches per second.
//!
//! Siblings in the same phase run the same branches with the same histories and train them for each
//! other, as far as they share code. Siblings in unlike phases do not, nor do processes that run one
//! binary: their data differs, and with it their histories, and no entry of one is of use to the
//! other unless the branch does the same for both. docs/concepts/contention.md has measurements of it.
//!
//! The engine accounts for what threads do to each other that use a predictor in turns: see
//! `engine/relearn.rs`.
//!
//! [`BranchModel::insertions`]: crate::contention::branches::BranchModel::insertions
//! [`BranchSpec::shared_mpki`]: crate::program::BranchSpec::shared_mpki

use super::SolverState;
use crate::contention::layout::SharedStructures;
use crate::contention::types::Demand;
use std::sync::Arc;

/// Notes how much strangers insert into each thread's predictor.
pub(super) fn share_predictors(state: &mut SolverState<'_>, sharing: &SharedStructures<'_>) {
    for members in &sharing.predictors {
        if state.rests[members[0]] {
            continue;
        }
        for &i in members {
            let demand = sharing.settings[i].demand;
            let branches = demand.phase.spec.mix.branch / state.guess[i].time_s;
            let foreign: f64 = members
                .iter()
                .filter(|&&j| j != i)
                .map(|&j| {
                    let other = sharing.settings[j].demand;
                    foreign_share(demand, other) * insertions_per_s(state, sharing, j)
                })
                .sum();
            state.held[i].strangers = if branches > 0.0 {
                foreign / branches
            } else {
                0.0
            };
        }
    }
}

fn insertions_per_s(state: &SolverState<'_>, sharing: &SharedStructures<'_>, i: usize) -> f64 {
    let branches = &sharing.settings[i].branches;
    // Of the guess rather than of the last terms, so that steps of the iteration are damped.
    let mispredictions = branches.mispredictions(state.guess[i].strangers);
    branches.insertions(mispredictions) / state.guess[i].time_s
}

/// Share of what `other` inserts that is foreign to a thread, 0 to 1.
fn foreign_share(own: &Demand, other: &Demand) -> f64 {
    let same_phase = || Arc::ptr_eq(&own.phase, &other.phase) || own.phase == other.phase;
    if own.program == other.program && same_phase() {
        1.0 - own.shared_code.min(other.shared_code)
    } else {
        1.0
    }
}
