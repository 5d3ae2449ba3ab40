//! Reasons for which a run cannot be, and for which a process cannot be in it.

use crate::discovery::{ProcError, UnmanageableReason};
use crate::enact::{EnactError, LaunchError};
use crate::group::GroupError;
use nix::errno::Errno;
use thiserror::Error;

/// Reason for which a command could not be managed.
#[derive(Debug, Error)]
pub enum LiveError {
    /// The command could not be started; nothing was changed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Journal or guardian could not be set up; nothing was started.
    #[error(transparent)]
    Enact(#[from] EnactError),
    /// The group could not be entered; nothing was started.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// `/proc` cannot be read.
    #[error("threads cannot be watched: {0}")]
    Proc(#[from] ProcError),
    /// Waiting for signals and samples failed.
    #[error("waiting for signals and samples failed: {0}")]
    Wait(Errno),
    /// A plan is older than one that was carried out.
    #[error("plan {generation} is not newer than plan {last}")]
    StalePlan {
        /// The plan's generation.
        generation: u64,
        /// Generation of the last plan that was carried out.
        last: u64,
    },
}

/// Reason for which a process cannot be attached.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AttachError {
    /// There is no process of this number.
    #[error("there is no process {0}")]
    Gone(u32),
    /// The process cannot be looked at, though it may be there.
    #[error("process {0} cannot be looked at: {1}")]
    Unreadable(u32, ProcError),
    /// The process is Consort, or its guardian.
    #[error("process {0} is consort itself")]
    Own(u32),
    /// The process is the ancestor of all others.
    #[error("process 1 is what everything has come from; attach control groups instead")]
    Everything,
    /// The process must be left alone.
    #[error("process {0} cannot be managed: {1}")]
    Unmanageable(u32, UnmanageableReason),
    /// The process belongs to another user than the one that asks.
    #[error("process {pid} belongs to user {owner}, and user {asker} asks for it")]
    NotYours {
        /// The process.
        pid: u32,
        /// User that the process acts for, or can become.
        owner: u32,
        /// User id of the one that asks.
        asker: u32,
    },
    /// The process is managed already.
    #[error("process {0} is managed already")]
    Managed(u32),
}

impl AttachError {
    /// The error for a process that could not be read.
    pub(super) fn from_proc_error(pid: u32, error: ProcError) -> Self {
        match error {
            ProcError::Gone => Self::Gone(pid),
            error => Self::Unreadable(pid, error),
        }
    }
}
