//! The conclusions that are put to the test. Workloads are those that the sources or studies have
//! on such ground, chosen before their outcome was known or in spite of it; a conclusion that does
//! not hold to begin with stays, and a note says so. To add one takes an entry in
//! `studies/grounds/sensitivity.toml`.

use super::super::load::ProgramLoad;
use crate::simulate::{RunMeasurements, part_error};
use crate::study::StudyError;
use serde::Deserialize;

/// Metric by which two policies' runs are compared, as a ratio that is above 1 where ours is
/// better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Metric {
    /// System throughput, ours over theirs.
    Throughput,
    /// Time until the last program is done, theirs over ours.
    Speed,
    /// Largest over smallest slowdown, theirs over ours.
    Fairness,
}

/// A conclusion: a policy is better than another at something.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyConclusion {
    /// Key of its tables and figures.
    pub key: String,
    /// The conclusion in words.
    pub sentence: String,
    /// The machine, for example `power7:smt=2`.
    pub machine: String,
    /// Cores in use by number; all when empty.
    pub cores: Vec<usize>,
    /// Programs that run.
    pub load: Vec<ProgramLoad>,
    /// The policy that is said to be better.
    pub policy: String,
    /// The policy that it is better than.
    pub over: String,
    /// Metric by which it is better.
    pub metric: Metric,
    /// Time of a program's work alone, s, at the quick and the full scale.
    pub alone_s: [f64; 2],
    /// Runs of each policy in each trial; a conclusion with none is not put to the test.
    pub runs: [usize; 2],
}

/// A ratio above this is the conclusion, below it its opposite.
pub(super) const THRESHOLD: f64 = 1.0;

impl Metric {
    /// The ratio of two runs of one seed.
    pub fn ratio(self, ours: &RunMeasurements, theirs: &RunMeasurements) -> f64 {
        match self {
            Self::Throughput => ours.stp / theirs.stp,
            Self::Speed => theirs.makespan_s / ours.makespan_s,
            Self::Fairness => theirs.unfairness / ours.unfairness,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Speed => "speed",
            Self::Fairness => "fairness",
        }
    }
}

impl StudyConclusion {
    /// Returns true where both stand on the same runs.
    pub fn has_runs_of(&self, other: &Self) -> bool {
        self.machine == other.machine
            && self.cores == other.cores
            && self.load == other.load
            && self.policy == other.policy
            && self.over == other.over
    }

    /// Text of the axis of its ratio.
    pub fn axis(&self) -> String {
        format!(
            "{} of {} over {}",
            self.metric.name(),
            short(&self.policy),
            short(&self.over)
        )
    }
}

/// A policy without its options.
fn short(policy: &str) -> &str {
    policy.split(':').next().unwrap_or(policy)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConclusionFile {
    headline: Vec<StudyConclusion>,
}

/// The conclusions, those that stand on the same runs next to each other.
///
/// # Errors
/// A file that is none; the tests rule that out.
pub(super) fn headlines() -> Result<Vec<StudyConclusion>, StudyError> {
    let text = include_str!("../../../studies/grounds/sensitivity.toml");
    let file: ConclusionFile = toml::from_str(text).map_err(part_error("conclusions"))?;
    Ok(file.headline)
}
