//! A conclusion that was put to the test: its ratios in every trial.

use super::headlines::{StudyConclusion, THRESHOLD};
use super::subject::VariedParameter;
use super::wilson;
use consort_core::stats::{RatioInterval, quantile};

/// Verdict of a trial on a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConclusionVerdict {
    /// The whole interval of the ratio lies above the threshold.
    Holds,
    /// The threshold lies in the interval, or there is none.
    Unclear,
    /// The whole interval lies below the threshold.
    Fails,
}

/// The ratios of a trial, and the distance that the parameter went.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SensitivityTrial {
    /// Ratio of every run.
    pub ratios: Vec<f64>,
    /// Factor of the one parameter that was varied; 1 where none or all were.
    pub reached: f64,
}

/// One parameter at both ends.
pub(super) struct ParameterSwing<'a> {
    pub parameter: &'a VariedParameter,
    /// Trials at the low and at the high end.
    pub ends: [&'a SensitivityTrial; 2],
}

/// A conclusion with its trials.
pub(super) struct ConclusionTrials<'a> {
    pub headline: &'a StudyConclusion,
    pub parameters: Vec<VariedParameter>,
    /// Trials in the order of [`super::variation::list`].
    pub trials: Vec<SensitivityTrial>,
}

impl SensitivityTrial {
    /// Geometric mean over the runs.
    pub fn ratio(&self) -> f64 {
        self.interval().map_or(f64::NAN, |ratio| ratio.mean)
    }

    pub fn interval(&self) -> Option<RatioInterval> {
        RatioInterval::from_ratios(&self.ratios)
    }

    pub fn verdict(&self) -> ConclusionVerdict {
        match self.interval() {
            Some(ratio) if ratio.low() > THRESHOLD => ConclusionVerdict::Holds,
            Some(ratio) if ratio.high() < THRESHOLD => ConclusionVerdict::Fails,
            _ => ConclusionVerdict::Unclear,
        }
    }
}

impl ParameterSwing<'_> {
    /// Difference of the ratios at both ends.
    pub fn size(&self) -> f64 {
        (self.ends[1].ratio() - self.ends[0].ratio()).abs()
    }

    /// Returns true where the conclusion holds beyond noise at both ends.
    pub fn holds(&self) -> bool {
        self.ends
            .iter()
            .all(|end| end.verdict() == ConclusionVerdict::Holds)
    }

    /// Returns true where its opposite holds beyond noise at one of them.
    pub fn fails(&self) -> bool {
        self.ends
            .iter()
            .any(|end| end.verdict() == ConclusionVerdict::Fails)
    }
}

impl ConclusionTrials<'_> {
    /// The trial with nothing varied.
    pub fn plain(&self) -> &SensitivityTrial {
        &self.trials[0]
    }

    /// The parameters by swing, the largest first.
    pub fn swings(&self) -> Vec<ParameterSwing<'_>> {
        let swing = |(number, parameter)| ParameterSwing {
            parameter,
            ends: [1, 2].map(|end| &self.trials[2 * number + end]),
        };
        let mut all: Vec<ParameterSwing<'_>> =
            self.parameters.iter().enumerate().map(swing).collect();
        all.sort_by(|a, b| b.size().total_cmp(&a.size()));
        all
    }

    /// The trials with all parameters varied at once.
    pub fn samples(&self) -> &[SensitivityTrial] {
        &self.trials[1 + 2 * self.parameters.len()..]
    }
}

/// Result of all samples.
pub(super) struct JointResult {
    pub samples: usize,
    /// Samples with a ratio above the threshold.
    pub hold: usize,
    /// Share of these with its 95 percent interval, percent.
    pub percent: f64,
    pub percent_95: [f64; 2],
    /// Ratios that 5, 50 and 95 percent of the samples do not exceed.
    pub quantiles: [f64; 3],
}

impl JointResult {
    pub fn from_samples(samples: &[SensitivityTrial]) -> Self {
        let ratios: Vec<f64> = samples.iter().map(SensitivityTrial::ratio).collect();
        let hold = ratios.iter().filter(|ratio| **ratio > THRESHOLD).count();
        let at = |q| quantile(&ratios, q).unwrap_or(f64::NAN);
        Self {
            samples: samples.len(),
            hold,
            percent: 100.0 * hold as f64 / samples.len().max(1) as f64,
            percent_95: wilson::interval(hold, samples.len()).map(|share| 100.0 * share),
            quantiles: [at(0.05), at(0.5), at(0.95)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::headlines::headlines;
    use super::*;

    fn trial(ratios: &[f64]) -> SensitivityTrial {
        SensitivityTrial {
            ratios: ratios.to_vec(),
            reached: 1.0,
        }
    }

    fn tested() -> ConclusionTrials<'static> {
        let keys = |key: &str| VariedParameter::Machine(vec![key.to_owned()]);
        ConclusionTrials {
            headline: Box::leak(Box::new(headlines().unwrap().remove(0))),
            parameters: vec![keys("small"), keys("large"), keys("turning")],
            trials: [
                &[1.1, 1.1][..],
                &[1.1, 1.1],
                &[1.11, 1.11],
                &[1.2, 1.2],
                &[1.5, 1.5],
                &[0.9, 0.9],
                &[1.05, 1.05],
                &[0.5, 0.5],
                &[2.0, 2.0],
                &[3.0, 3.0],
            ]
            .map(trial)
            .to_vec(),
        }
    }

    #[test]
    fn verdicts_take_noise_into_account() {
        let check = |ratios: &[f64], expect| assert_eq!(trial(ratios).verdict(), expect);
        check(&[1.2, 1.21, 1.19], ConclusionVerdict::Holds);
        check(&[0.8, 1.3, 1.1], ConclusionVerdict::Unclear);
        check(&[0.8, 0.81, 0.79], ConclusionVerdict::Fails);
        check(&[1.0, 1.0], ConclusionVerdict::Unclear);
        check(&[], ConclusionVerdict::Unclear);
    }

    #[test]
    fn swings_are_by_size_and_know_what_they_turn_round() {
        let tested = tested();
        let swings = tested.swings();
        let names: Vec<String> = swings.iter().map(|s| s.parameter.name()).collect();
        assert_eq!(names, ["machine.large", "machine.turning", "machine.small"]);
        assert!(swings[0].holds() && !swings[0].fails());
        assert!(!swings[1].holds() && swings[1].fails());
    }

    #[test]
    fn samples_are_what_follows_the_ends() {
        let tested = tested();
        let joint = JointResult::from_samples(tested.samples());
        assert_eq!((joint.samples, joint.hold), (3, 2));
        assert!((joint.percent - 200.0 / 3.0).abs() < 1e-9);
        assert_eq!(joint.quantiles[1], 2.0);
        assert!(joint.percent_95[0] < joint.percent && joint.percent < joint.percent_95[1]);
    }
}
