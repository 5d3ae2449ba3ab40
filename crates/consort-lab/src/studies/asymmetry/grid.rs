//! Runs of several cases under several policies.

use super::case::{Case, Outcome, Value};
use crate::context::Context;
use crate::report::Cell;
use crate::studies::symbiosis::cells::{interval, ratio, ratios};
use crate::study::StudyError;
use consort_core::stats::RatioInterval;

/// All runs of some cases.
pub(in crate::studies) struct Grid {
    /// Keys of the cases.
    pub keys: Vec<String>,
    /// The policies, in the order of rows.
    pub policies: Vec<String>,
    /// Runs of each case and policy.
    pub runs: usize,
    /// By case, then policy, then run.
    outcomes: Vec<Outcome>,
}

impl Grid {
    /// Runs every case under every policy with the seeds that follow the context's.
    ///
    /// # Errors
    /// Those of the runs.
    pub fn run(
        context: &Context<'_>,
        cases: &[Case],
        policies: &[&str],
        runs: usize,
    ) -> Result<Self, StudyError> {
        let mut jobs: Vec<(&Case, &str, u64)> = Vec::new();
        for case in cases {
            for policy in policies {
                let seeds = (0..runs as u64).map(|run| context.seed().wrapping_add(run));
                jobs.extend(seeds.map(|seed| (case, *policy, seed)));
            }
        }
        let outcomes = context.map(&jobs, |(case, policy, seed)| case.run(policy, *seed))?;
        Ok(Self {
            keys: cases.iter().map(|case| case.key.clone()).collect(),
            policies: policies.iter().map(|&policy| policy.to_owned()).collect(),
            runs,
            outcomes: outcomes.into_iter().collect::<Result<_, StudyError>>()?,
        })
    }

    /// Position of a policy; none where it was not run.
    pub fn policy(&self, name: &str) -> Option<usize> {
        self.policies.iter().position(|policy| policy == name)
    }

    /// The runs of a case under a policy.
    pub fn outcomes(&self, case: usize, policy: usize) -> &[Outcome] {
        let first = (case * self.policies.len() + policy) * self.runs;
        &self.outcomes[first..first + self.runs]
    }

    /// A value of each of these runs.
    pub fn values(&self, case: usize, policy: usize, value: Value) -> Vec<f64> {
        self.outcomes(case, policy).iter().map(value).collect()
    }

    /// Mean over the runs of one case, with its interval.
    pub fn mean(&self, case: usize, policy: usize, value: Value) -> Cell {
        interval(&self.values(case, policy, value))
    }

    /// Geometric mean over the runs of one case of a policy's value over another's, run by run.
    pub fn ratio(&self, case: usize, policy: usize, over: usize, value: Value) -> Cell {
        let theirs = self.values(case, over, value);
        ratio(&self.values(case, policy, value), &theirs)
    }

    /// Mean over cases of the mean over runs, with the interval over cases.
    pub fn mean_of(&self, cases: &[usize], policy: usize, value: Value) -> Cell {
        let mean = |&case: &usize| {
            let values = self.values(case, policy, value);
            values.iter().sum::<f64>() / values.len() as f64
        };
        interval(&cases.iter().map(mean).collect::<Vec<_>>())
    }

    /// Geometric mean over cases of a policy's value over another's, each taken run by run, with
    /// the interval over cases.
    pub fn ratio_of(&self, cases: &[usize], policy: usize, over: usize, value: Value) -> Cell {
        let of_case = |&case: &usize| {
            let pairs = self
                .outcomes(case, policy)
                .iter()
                .zip(self.outcomes(case, over));
            let all: Vec<f64> = pairs
                .map(|(ours, theirs)| value(ours) / value(theirs))
                .collect();
            RatioInterval::of(&all).map_or(f64::NAN, |ratio| ratio.mean)
        };
        ratios(&cases.iter().map(of_case).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::super::chips::chip;
    use super::super::programs::{copies, find};
    use super::*;
    use crate::study::Scale;
    use crate::testing::workers;

    fn grid(count: usize) -> Grid {
        let context = Context::new(3, Scale::Quick, workers(count), &|_| ());
        let chip = chip("acmp-1+1").unwrap();
        let case = |name: &str| {
            let workload = copies(&find(name).unwrap(), 2);
            Case::new(name, &chip, workload, 0.01, context.seed()).unwrap()
        };
        let cases = ["hmmer", "mcf"].map(case);
        Grid::run(&context, &cases, &["linux", "hrrs"], 2).unwrap()
    }

    #[test]
    fn runs_are_found_by_case_and_policy_whatever_the_workers() {
        let (one, three) = (grid(1), grid(3));
        assert_eq!(one.outcomes, three.outcomes);
        let hrrs = one.policy("hrrs").unwrap();
        assert_eq!(one.outcomes(1, hrrs), &one.outcomes[6..8]);
        assert_eq!(one.policy("kuths"), None);
        // Round robin moves threads and this linux leaves both where they are.
        let moves = |policy| one.outcomes(0, policy)[0].migration_hz;
        assert!(moves(hrrs) > 100.0 && moves(0) < 100.0);
    }

    #[test]
    fn ratios_are_taken_run_by_run() {
        let grid = grid(1);
        let stp: Value = |o| o.stp;
        let same = grid.ratio_of(&[0, 1], 1, 1, stp);
        assert_eq!((same.value(), same.n()), (Some(1.0), Some(2)));
        let both = grid.ratio(0, 1, 0, stp).value().unwrap();
        let [a, b] = [1, 0].map(|policy| grid.values(0, policy, stp));
        let expect = (a[0] / b[0] * a[1] / b[1]).sqrt();
        assert!((both - expect).abs() < 1e-12);
    }
}
