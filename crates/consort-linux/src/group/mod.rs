//! Groups: several runs of Consort whose programs share the machine under one control loop.
//!
//! Every `consort run --group NAME` starts its command itself. The first of a group leads: it
//! holds the lock, and its control loop covers the programs of all. Each later one is a member: it
//! sends the leader the process that it has started, and waits. When the leader goes away, for
//! whatever reason, its enactor or guardian restores every mask, and a member that gets the lock
//! leads from then on.
//!
//! Chance decides which run comes first if several are started at once. So terms that the leader's
//! user did not demand are open: the first member that demands a policy or a quantum settles it for
//! all.
//!
//! Usage: [`enter_group`] returns the place in a group; [`Leader::serve_members`] reports
//! members that come and go, and [`Leader::proposal`] one that demands open terms;
//! [`GroupMember`] is the member's side.
//!
//! The files of a group lie in the folder for journals, which is private to its user:
//! `group-NAME.lock`, locked by the leader (`flock(2)`), and `group-NAME.socket`. Files that a
//! killed leader leaves there are deleted by its guardian, or else by the next run. Peers are
//! checked all the same (`SO_PEERCRED`, `unix(7)`): the same effective user, and only processes
//! that the peer has started itself.
//!
//! Pitfalls: a group is one user's; runs of other users with the same name are another group. A
//! leader that is stopped by SIGSTOP keeps its lock, and the group waits for it.

mod leader;
mod lock;
mod member;

pub use crate::protocol::{
    Demands, GroupTerms, JoiningCommand, Language, LeaderMessage, LineBuffer, LineError,
    MAX_LINE_BYTES, MemberMessage, OpenTerms,
};
pub use leader::{Leader, LeaderCandidate, LeaderTask};
pub(crate) use lock::delete_stale_files;
pub use member::{GroupMember, LeaderNews};

use crate::enact::RuntimeDirError;
use lock::GroupFolder;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};
use std::{fmt, io};
use thiserror::Error;

/// Longest time that a leader may take to come up, or to go.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

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
        source: LineError,
    },
}

/// A run's place in a group.
#[derive(Debug)]
pub enum GroupPlace {
    /// The run is to lead.
    Leads(LeaderCandidate),
    /// The run is a member; another one leads.
    Follows(GroupMember),
}

/// Enters a group: as its leader if it has none, else as a member on the leader's terms. `dirs` are
/// the folders for journals, best first.
///
/// # Errors
/// If no folder can hold the group's files, or the leader refuses or does not answer.
pub fn enter_group(
    dirs: &[PathBuf],
    name: &GroupName,
    demands: &Demands,
) -> Result<GroupPlace, GroupError> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(place) = try_enter_group(dirs, name, demands)? {
            return Ok(place);
        }
        std::thread::sleep(PAUSE);
    }
    let group = name.to_string();
    Err(GroupError::Silent { group })
}

/// Attempts once to enter a group; `None` while a leader is about to come or to go.
///
/// # Errors
/// Those of [`enter_group`].
pub fn try_enter_group(
    dirs: &[PathBuf],
    name: &GroupName,
    demands: &Demands,
) -> Result<Option<GroupPlace>, GroupError> {
    let folder = match GroupFolder::new(dirs, name)?.lock()? {
        Ok(lock) => {
            let candidate = LeaderCandidate::new(lock);
            return Ok(Some(GroupPlace::Leads(candidate)));
        }
        Err(folder) => folder,
    };
    // Another run has the lock. It leads, or is about to come or to go.
    Ok(GroupMember::greet(&folder, demands)?.map(GroupPlace::Follows))
}

/// Longest name, bytes; it becomes a part of file names.
const MAX_BYTES: usize = 64;

/// The name of a group: letters, digits, `.`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupName(String);

/// Error for a text that cannot name a group.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{0}' cannot name a group: use 1 to {MAX_BYTES} letters, digits, '.', '_' or '-', \
     and begin with a letter or digit"
)]
pub struct NameError(String);

/// Name of the group that a daemon leads; its first character keeps users from giving the same.
const DAEMON: &str = "_daemon";

impl GroupName {
    /// Name of the group that a daemon leads.
    #[must_use]
    pub fn for_daemon() -> Self {
        Self(DAEMON.to_owned())
    }

    /// Returns true if this is the daemon's group, which no other run leads.
    pub fn is_daemon(&self) -> bool {
        self.0 == DAEMON
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for GroupName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if begins_well && text.len() <= MAX_BYTES && text.chars().all(fits) {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError(text.chars().take(MAX_BYTES).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_names_are_names() {
        for text in ["suite", "7", "a.b_c-D", &"x".repeat(MAX_BYTES)] {
            assert_eq!(text.parse::<GroupName>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn path_like_or_long_name_is_refused() {
        let long = "x".repeat(MAX_BYTES + 1);
        for text in ["", ".", "..", "-x", "a/b", "a b", "é", "a\0", &long] {
            assert!(text.parse::<GroupName>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn name_is_one_part_of_a_path(text in any::<String>()) {
            if let Ok(name) = text.parse::<GroupName>() {
                let file = format!("group-{name}.socket");
                let parts = std::path::Path::new(&file).components().count();
                prop_assert_eq!(parts, 1);
            }
        }
    }
}
