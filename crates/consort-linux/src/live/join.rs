//! Starting of a command in a group: as its leader, or as a member that follows one.

use super::error::LiveError;
use super::follower::Follower;
use super::launch::RESTORE_LIMIT;
use super::membership::{GroupTarget, terms};
use super::settings::LaunchSpec;
use super::{Host, LiveMachine};
use crate::enact::{Enactor, wait_for_guardians};
use crate::group::{GroupError, GroupPlace, enter_group};

/// Position in which a command was started.
pub enum JoinOutcome {
    /// This run manages the whole group.
    Leads(Box<LiveMachine>),
    /// Another run manages the group.
    Follows(Box<Follower>),
}

impl LiveMachine {
    /// Starts a command in a group. It is held before its first instruction until the leader
    /// watches it.
    ///
    /// # Errors
    /// As for [`LiveMachine::launch`]; and when the group cannot be entered, or its leader refuses: then
    /// nothing was started.
    pub fn join(
        host: Host,
        spec: LaunchSpec,
        group: GroupTarget,
    ) -> Result<JoinOutcome, LiveError> {
        let (mut command, settings) = spec.split();
        command.envs(super::malleable::team_sizes(&host));
        let dirs = &settings.enact.runtime_dirs;
        let place = match enter_group(dirs, &group.name, &group.demands) {
            // Without a folder there is no group, and no journal either.
            Err(GroupError::Dir(_) | GroupError::File { .. }) => {
                let live = Self::start_command(host, command, &settings, |_| Ok(None))?;
                return Ok(JoinOutcome::Leads(Box::new(live)));
            }
            place => place?,
        };
        match place {
            GroupPlace::Leads(candidate) => {
                // An old leader's members may be about to hand their commands over.
                wait_for_guardians(dirs, RESTORE_LIMIT);
                let lead = |enactor: &Enactor| {
                    let terms = terms(enactor, &settings, &group);
                    Ok(Some(candidate.lead(terms)?))
                };
                let live = Self::start_command(host, command, &settings, lead)?;
                Ok(JoinOutcome::Leads(Box::new(live)))
            }
            GroupPlace::Follows(member) => {
                let follower = Follower::start_command(host, command, settings, group, member)?;
                Ok(JoinOutcome::Follows(Box::new(follower)))
            }
        }
    }
}
