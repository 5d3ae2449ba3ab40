//! Sweeps: many runs described in one file, in shards that any scheduler can distribute.
//!
//! A [`SweepSpec`] names machines, workloads, policies, parameters and seeds, or studies. A
//! [`Sweep`] has its units in a fixed order; a [`SweepPlan`] cuts them into numbered shards of
//! similar estimated work. [`ShardFolder`] is the contract: `run N` writes one file, atomically,
//! named after its content, and does nothing if that file exists; merging joins the files in order.
//! Nothing here depends on a scheduler.
//!
//! A plan belongs to one version of Consort and to the contents of all files that it names. If
//! these have changed, [`ShardFolder::run`] refuses.

mod cases;
mod folder;
mod plan;
mod spec;
mod units;
pub use folder::{ShardFolder, ShardOutcome, SweepStatus};
pub use plan::{Shard, SweepPlan};
pub use spec::{Method, Parameter, Samples, Scaling, SweepSpec};
pub use units::Sweep;

use crate::UnknownStudy;
use crate::runner::StudyRunError;
use consort_core::topology::TopologyError;
use consort_data::TableError;
use consort_experiment::ExperimentError;
use consort_sim::describe::DescribeError;
use consort_sim::machine::MachineError;
use consort_sim::workload::WorkloadError;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Reason why a sweep fails. Its text is one line.
#[derive(Debug, Error)]
pub enum SweepError {
    /// The description.
    #[error(transparent)]
    Describe(#[from] DescribeError),
    /// A machine of the description.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// A machine that cannot be laid out.
    #[error(transparent)]
    Chip(#[from] TopologyError),
    /// A workload of the description.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A study of the description.
    #[error(transparent)]
    Study(#[from] UnknownStudy),
    /// The studies that come with Consort cannot be read.
    #[error("{0}")]
    Studies(String),
    /// A policy of the description, or a run.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A study that failed.
    #[error(transparent)]
    Run(#[from] StudyRunError),
    /// A table's file.
    #[error(transparent)]
    Table(#[from] TableError),
    /// There is no plan.
    #[error("{}: there is no plan; `consort sweep plan FILE` makes one", .0.display())]
    NoPlan(PathBuf),
    /// The plan cannot be read.
    #[error("{}: is no plan of a sweep: {cause}; plan again", path.display())]
    Plan {
        /// Its file.
        path: PathBuf,
        /// Cause of the failure.
        cause: String,
    },
    /// There is no such shard.
    #[error("there is no shard {requested}; the plan has 0 to {last}")]
    NoShard {
        /// Its number.
        requested: usize,
        /// The last number.
        last: usize,
    },
    /// A file of the plan, or Consort, has changed.
    #[error(
        "shard {number}: what it runs is not what was planned: a file that the description names, or \
         Consort, has changed since; plan again"
    )]
    Changed {
        /// The shard's number.
        number: usize,
    },
    /// Results are missing.
    #[error(
        "{count} of {all} shards have no result: {}; `consort sweep run` runs them",
        ranges(missing)
    )]
    Gaps {
        /// Number of missing shards.
        count: usize,
        /// Shards of the plan.
        all: usize,
        /// Their numbers, ascending.
        missing: Vec<usize>,
    },
    /// The folder cannot be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        cause: std::io::Error,
    },
}

impl SweepError {
    fn io(path: &Path, cause: std::io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            cause,
        }
    }

    /// True if the caller can correct the error; false if a run or the file system failed.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Experiment(error) => !matches!(
                error,
                ExperimentError::Workers(_) | ExperimentError::Sim(_) | ExperimentError::Stopped
            ),
            Self::Run(_) | Self::Io { .. } | Self::Gaps { .. } | Self::Studies(_) => false,
            _ => true,
        }
    }
}

/// Ascending numbers as `3,5-9`.
pub fn ranges(numbers: &[usize]) -> String {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for &number in numbers {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => spans.push((number, number)),
        }
    }
    let texts = spans.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_named() {
        let error = SweepError::Gaps {
            count: 5,
            all: 20,
            missing: vec![0, 3, 4, 5, 19],
        };
        let expected = "5 of 20 shards have no result: 0,3-5,19; `consort sweep run` runs them";
        assert_eq!(error.to_string(), expected);
    }
}
