//! Why a group cannot be entered.

use super::message::MessageError;
use crate::enact::RuntimeDirError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a group cannot be entered.
#[derive(Debug, Error)]
pub enum GroupError {
    /// There is no folder for it.
    #[error(transparent)]
    Dir(#[from] RuntimeDirError),
    /// A file of the group cannot be used.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
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
    /// The leader is there and says nothing.
    #[error("group {group}: its leader does not answer; is it stopped, or its host overloaded?")]
    Silent {
        /// The group.
        group: String,
    },
    /// The leader says what makes no sense.
    #[error("group {group}: its leader cannot be understood: {source}")]
    Foreign {
        /// The group.
        group: String,
        /// What is wrong with it.
        source: MessageError,
    },
}
