//! Starting of a command in a group: as its leader, or as a member that follows one.

use super::follower::Follower;
use super::launch::{LaunchSpec, LiveError, Settings};
use super::succession::RESTORE_LIMIT;
use super::{Host, Live};
use crate::enact::{Enactor, wait_for_guardians};
use crate::group::{Demands, GroupName, Leader, Open, Place, Terms, enter};
use std::time::Duration;

/// The group that a command is to join.
#[derive(Clone, Debug)]
pub struct GroupSpec {
    /// Name of the group.
    pub name: GroupName,
    /// Terms that the user asks for; a leader that was asked for other terms refuses.
    pub demands: Demands,
    /// Policy, as text, that holds if this run leads and no member asks for another.
    pub policy: String,
}

/// Position in which a command was started.
pub enum Begun {
    /// This run manages the whole group.
    Leads(Box<Live>),
    /// Another run manages the group.
    Follows(Box<Follower>),
}

/// Summary of a run's part in its group, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSummary {
    /// Name of the group.
    pub name: String,
    /// True if this run led the group in the end.
    pub led: bool,
    /// Pid of the last leader.
    pub leader: u32,
    /// Policy of the group with options, as text.
    pub policy: String,
    /// Most programs at a time, as far as this run knows: a member knows of itself and its leader.
    pub most_programs: usize,
}

impl Live {
    /// Starts a command in a group. It is held before its first instruction until the leader
    /// watches it.
    ///
    /// # Errors
    /// As for [`Live::launch`]; and when the group cannot be entered, or its leader refuses: then
    /// nothing was started.
    pub fn join(host: Host, spec: LaunchSpec, group: GroupSpec) -> Result<Begun, LiveError> {
        let (mut command, settings) = spec.split();
        command.envs(super::malleable::team_sizes(&host));
        let dirs = &settings.enact.runtime_dirs;
        match enter(dirs, &group.name, &group.demands)? {
            Place::Leads(candidate) => {
                // An old leader's members may be about to hand their commands over.
                wait_for_guardians(dirs, RESTORE_LIMIT);
                let lead = |enactor: &Enactor| {
                    let terms = terms(enactor, &settings, &group);
                    Ok(Some(candidate.lead(terms)?))
                };
                let live = Self::begin(host, command, &settings, lead)?;
                Ok(Begun::Leads(Box::new(live)))
            }
            Place::Follows(member) => {
                let follower = Follower::begin(host, command, settings, group, member)?;
                Ok(Begun::Follows(Box::new(follower)))
            }
        }
    }
}

/// The terms on which a run leads.
pub(super) fn terms(enactor: &Enactor, settings: &Settings, group: &GroupSpec) -> Terms {
    Terms {
        leader: std::process::id(),
        run: enactor.run_id().to_owned(),
        policy: group.policy.clone(),
        interval_ms: millis(settings.interval),
        dry_run: settings.dry_run,
        profile: settings.recorded.as_ref().map(|r| r.origin().to_owned()),
        open: Open {
            policy: group.demands.policy.is_none(),
            interval: group.demands.interval_ms.is_none(),
        },
    }
}

/// Whole milliseconds, as terms have them.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl GroupSummary {
    /// Summary of a run that leads.
    pub(super) fn led(leader: &Leader) -> Self {
        Self {
            name: leader.group().to_string(),
            led: true,
            leader: std::process::id(),
            policy: leader.terms().policy.clone(),
            most_programs: leader.most_programs(),
        }
    }
}
