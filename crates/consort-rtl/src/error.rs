//! What can go wrong.

use std::path::PathBuf;
use thiserror::Error;

/// Reason why a unit could not be compared with its policy, or how they differ.
#[derive(Debug, Error)]
pub enum Error {
    /// A program could not be started or heard.
    #[error("{what}: {cause}")]
    Io {
        /// What was tried.
        what: String,
        /// The cause.
        #[source]
        cause: std::io::Error,
    },
    /// Verilator refused the sources or its model did not compile.
    #[error("verilator of {setting} in {folder}: {said}")]
    Build {
        /// What was to be built.
        setting: String,
        /// Where.
        folder: PathBuf,
        /// Last lines of what it said.
        said: String,
    },
    /// The setting cannot be built.
    #[error("{setting}: {expected}")]
    Setting {
        /// What was asked for.
        setting: String,
        /// What would be right.
        expected: &'static str,
    },
    /// The policy does not exist or not with such options.
    #[error(transparent)]
    Policy(#[from] consort_core::policy::PolicyError),
    /// The policy's topology is not one.
    #[error(transparent)]
    Topology(#[from] consort_core::topology::TopologyError),
    /// The unit and the policy differ.
    #[error("{setting}, cycle {cycle}: {what}")]
    Differs {
        /// What was compared.
        setting: String,
        /// Where.
        cycle: u64,
        /// The difference.
        what: String,
    },
}

impl Error {
    pub(crate) fn io(what: &str) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.to_owned();
        move |cause| Self::Io { what, cause }
    }
}
