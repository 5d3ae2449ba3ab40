//! A place in a group: its leader's or a member's.

use super::client::{Greeting, Member};
use super::error::GroupError;
use super::leader::Candidate;
use super::lock::Folder;
use super::message::Demands;
use super::name::GroupName;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a leader may take to come up, or to go, before that is an error.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Where one is in a group.
#[derive(Debug)]
pub enum Place {
    /// It is to lead.
    Leads(Candidate),
    /// Somebody else leads.
    Follows(Member),
}

/// Enters a group: as its leader where there is none, else as a member on the leader's terms.
/// `dirs` are the folders for journals, best first.
///
/// # Errors
/// No folder, a leader that refuses, or one that does not answer.
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

/// One attempt to enter; nothing while a leader is about to come or to go.
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
