//! Errors between describing a guest and reading its answers.

use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Reason why a guest gave no usable answer.
#[derive(Debug, Error)]
pub enum VmError {
    /// A file of the host could not be read, written or run.
    #[error("{what} {path}: {source}", path = path.display())]
    Io {
        /// The operation that failed, as a verb.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// `ldd` could not say which shared libraries a program needs.
    #[error("ldd {path}: {message}", path = path.display())]
    Libraries {
        /// The program.
        path: PathBuf,
        /// The message of `ldd`.
        message: String,
    },
    /// A program of the workspace is missing.
    #[error("{0} is not built, and cargo could not build it")]
    NotBuilt(String),
    /// The guest was still running after its time and has been killed.
    #[error("the guest was killed after {limit:?}; its console ended with:\n{tail}")]
    Timeout {
        /// The time it was given.
        limit: Duration,
        /// The last lines of the console.
        tail: String,
    },
    /// The guest stopped before it had run every command.
    #[error("the guest stopped early; its console ended with:\n{tail}")]
    Died {
        /// The last lines of the console.
        tail: String,
    },
    /// A command of that name was not given, or its output is not complete.
    #[error("the console has no complete section '{0}'")]
    NoSection(String),
    /// A command failed in the guest.
    #[error("'{name}' exited with status {status} in the guest and wrote:\n{text}")]
    Failed {
        /// The section.
        name: String,
        /// The exit status.
        status: i32,
        /// The command's output.
        text: String,
    },
    /// A line that should describe a thread does not.
    #[error("'{0}' is not 'thread PID TID MASK COMM'")]
    ThreadLine(String),
    /// The requested topology is impossible.
    #[error("the guest's topology: {0}")]
    Topology(#[from] consort_core::topology::TopologyError),
    /// A measurement cannot be written down.
    #[error("the measurement cannot be written as TOML: {0}")]
    Document(#[from] toml::ser::Error),
    /// A line that should be a look at spinning threads is not.
    #[error("'{0}' is not 'look ARRIVAL AFTER_MS ELAPSED_US MIGRATIONS CPU,CPU'")]
    LookLine(String),
    /// A thread's file in `/proc` does not hold what it should.
    #[error("{path} does not say where the thread is or how often it has moved: '{text}'", path = path.display())]
    TaskFile {
        /// The file.
        path: PathBuf,
        /// The file's content.
        text: String,
    },
}

impl VmError {
    pub(crate) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
