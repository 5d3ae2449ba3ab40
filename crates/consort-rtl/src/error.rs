//! Errors of building a unit and of comparing it with its policy.

use std::path::PathBuf;
use thiserror::Error;

/// Reason why a unit could not be compared with its policy, or in which they differ.
#[derive(Debug, Error)]
pub enum RtlError {
    /// A program could not be started or heard.
    #[error("{what}: {cause}")]
    Io {
        /// The operation that failed.
        what: String,
        /// The cause.
        #[source]
        cause: std::io::Error,
    },
    /// Verilator refused the sources or its model did not compile.
    #[error("verilator of {setting} in {folder}: {said}")]
    Build {
        /// Unit and parameters that were to be built.
        setting: String,
        /// Folder of the build.
        folder: PathBuf,
        /// Last lines of Verilator's messages.
        said: String,
    },
    /// The setting cannot be built.
    #[error("{setting}: {expected}")]
    Setting {
        /// The setting that was asked for.
        setting: String,
        /// The settings that would be right.
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
        /// Unit and parameters that were compared.
        setting: String,
        /// Cycle of the difference.
        cycle: u64,
        /// The difference.
        what: String,
    },
}

impl RtlError {
    pub(crate) fn io_error(what: &str) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.to_owned();
        move |cause| Self::Io { what, cause }
    }
}
