//! A place in a group: its leader's or a member's.

use super::client::{GreetingOutcome, GroupMember};
use super::error::GroupError;
use super::leader::LeaderCandidate;
use super::lock::GroupFolder;
use super::message::Demands;
use super::name::GroupName;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest time that a leader may take to come up, or to go.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// A run's place in a group.
#[derive(Debug)]
pub enum GroupPlace {
    /// The run is to lead.
    Leads(LeaderCandidate),
    /// The run is a member; another one leads.
    Follows(GroupMember),
}

/// Enters a group: as its leader where there is none, else as a member on the leader's terms.
/// `dirs` are the folders for journals, best first.
///
/// # Errors
/// When no folder can hold the group's files, or the leader refuses or does not answer.
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

/// Attempts once to enter a group; none while a leader is about to come or to go.
///
/// # Errors
/// Those of [`enter_group`].
pub fn try_enter_group(
    dirs: &[PathBuf],
    name: &GroupName,
    demands: &Demands,
) -> Result<Option<GroupPlace>, GroupError> {
    let folder = match GroupFolder::new(dirs, name)?.lock()? {
        Ok(lock) => return Ok(Some(GroupPlace::Leads(LeaderCandidate::new(lock)))),
        Err(folder) => folder,
    };
    match GroupMember::greet(&folder, demands)? {
        GreetingOutcome::Welcome(member) => Ok(Some(GroupPlace::Follows(member))),
        GreetingOutcome::NobodyThere => Ok(None),
    }
}
