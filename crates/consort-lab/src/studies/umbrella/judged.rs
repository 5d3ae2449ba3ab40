//! The runs on one ground, and who was best.

use super::ground::UmbrellaCase;
use crate::frame::{CellQuery, Frame, IntervalBasis};
use consort_data::Cell;

/// A ground with its runs; the umbrella policy is the last.
pub(super) struct UmbrellaResult {
    pub ground: UmbrellaCase,
    pub frame: Frame,
}

impl UmbrellaResult {
    /// A measure of a policy, or that over another policy's.
    pub fn cell(&self, policy: usize, over: Option<usize>, measure: &str) -> Cell {
        let what = CellQuery {
            measure,
            policy: self.policy(policy),
            over: over.map(|over| self.policy(over)),
            ..CellQuery::default()
        };
        self.frame.cell(
            &what,
            &self.frame.group_all("", IntervalBasis::Cases, |_| true),
        )
    }

    /// Position of the umbrella policy.
    pub fn umbrella(&self) -> usize {
        self.frame.policies.len() - 1
    }

    /// Name of a policy.
    pub fn policy(&self, policy: usize) -> &str {
        &self.frame.policies[policy]
    }

    /// Position of the single-purpose policy with the largest mean; the system's own scheduler is
    /// none.
    pub fn best(&self) -> usize {
        let mean = |&policy: &usize| {
            let cell = self.cell(policy, None, self.ground.aim.measure());
            cell.value().unwrap_or(f64::NEG_INFINITY)
        };
        let own = 1..self.umbrella();
        own.max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or(0)
    }

    /// A policy's value over that of the system's scheduler.
    pub fn over_system(&self, policy: usize) -> Cell {
        self.cell(policy, Some(0), self.ground.aim.measure())
    }

    /// The umbrella's value over a policy's.
    pub fn umbrella_over(&self, policy: usize) -> Cell {
        self.cell(self.umbrella(), Some(policy), self.ground.aim.measure())
    }

    /// 1 where the umbrella is better than the best beyond the interval, −1 where it is worse.
    pub fn sign(&self) -> i32 {
        let cell = self.umbrella_over(self.best());
        let (ratio, half) = (cell.value().unwrap_or(1.0), cell.ci95().unwrap_or(0.0));
        if (ratio - 1.0).abs() <= half {
            0
        } else if ratio > 1.0 {
            1
        } else {
            -1
        }
    }

    /// The sign in a word.
    pub fn verdict(&self) -> &'static str {
        match self.sign() {
            1 => "better",
            0 => "as good within the interval",
            _ => "worse",
        }
    }

    /// The comparison in words.
    pub fn sentence(&self) -> String {
        let best = self.best();
        let means =
            |what| [best, self.umbrella()].map(|policy| self.cell(policy, None, what).text());
        let [their_moves, our_moves] = means("moves_hz");
        let [theirs, ours] = means("unfairness");
        format!(
            "{}: {} of holistic over {} {}; unfairness {ours} against {theirs}, moves {our_moves} \
             against {their_moves} per s.",
            self.ground.title,
            self.ground.aim.name(),
            self.policy(best),
            self.umbrella_over(best).text(),
        )
    }
}
