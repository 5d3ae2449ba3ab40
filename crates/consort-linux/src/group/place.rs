//! A place in a group: its leader's or a member's.

use super::client::{Greeting, Member};
use super::error::GroupError;
use super::leader::Candidate;
use super::lock::Folder;
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
pub enum Place {
    /// The run is to lead.
    Leads(Candidate),
    /// The run is a member; another one leads.
    Follows(Member),
}

/// Enters a group: as its leader where there is none, else as a member on the leader's terms.
/// `dirs` are the folders for journals, best first.
///
/// # Errors
/// When no folder can hold the group's files, or the leader refuses or does not answer.
pub fn enter(dirs: &[PathBuf], name: &GroupName, demands: &Demands) -> Result<Place, GroupError> {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(place) = try_enter(dirs, name, demands)? {
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
/// Those of [`enter`].
pub fn try_enter(
    dirs: &[PathBuf],
    name: &GroupName,
    demands: &Demands,
) -> Result<Option<Place>, GroupError> {
    let folder = match Folder::new(dirs, name)?.lock()? {
        Ok(lock) => return Ok(Some(Place::Leads(Candidate::new(lock)))),
        Err(folder) => folder,
    };
    match Member::greet(&folder, demands)? {
        Greeting::Welcome(member) => Ok(Some(Place::Follows(member))),
        Greeting::NobodyThere => Ok(None),
    }
}
