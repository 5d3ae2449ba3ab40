//! Errors of entering a group.

use super::message::MessageError;
use crate::enact::RuntimeDirError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason for which a group cannot be entered.
#[derive(Debug, Error)]
pub enum GroupError {
    /// No folder can hold the group's files.
    #[error(transparent)]
    Dir(#[from] RuntimeDirError),
    /// A file of the group cannot be used.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// The failed action, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The leader refuses.
    #[error("group {group}: {why}")]
    Refused {
        /// The group.
        group: String,
        /// The leader's reason.
        why: String,
    },
    /// The leader is there and does not answer.
    #[error("group {group}: its leader does not answer; is it stopped, or its host overloaded?")]
    Silent {
        /// The group.
        group: String,
    },
    /// The leader's answer is not a message of this version.
    #[error("group {group}: its leader cannot be understood: {source}")]
    Foreign {
        /// The group.
        group: String,
        /// The fault of the answer.
        source: MessageError,
    },
}
