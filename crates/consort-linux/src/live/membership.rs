//! The part of a run in its group: the group that it asks for, the terms on which it leads, and the
//! summary for reports.

use super::settings::LiveSettings;
use crate::enact::Enactor;
use crate::group::{Demands, GroupName, GroupTerms, Leader, OpenTerms};
use std::time::Duration;

/// The group that a command is to join.
#[derive(Clone, Debug)]
pub struct GroupTarget {
    /// Name of the group.
    pub name: GroupName,
    /// Terms that the user asks for; a leader that was asked for other terms refuses.
    pub demands: Demands,
    /// Policy, as text, that holds if this run leads and no member asks for another.
    pub policy: String,
}

/// Summary of a run's part in its group, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembershipSummary {
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

/// The terms on which a run leads.
pub(super) fn terms(enactor: &Enactor, settings: &LiveSettings, group: &GroupTarget) -> GroupTerms {
    GroupTerms {
        leader: std::process::id(),
        run: enactor.run_id().to_owned(),
        policy: group.policy.clone(),
        interval_ms: millis(settings.interval),
        dry_run: settings.dry_run,
        profile: settings.recorded.as_ref().map(|r| r.origin().to_owned()),
        open: OpenTerms {
            policy: group.demands.policy.is_none(),
            interval: group.demands.interval_ms.is_none(),
        },
    }
}

/// Whole milliseconds, as terms have them.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl MembershipSummary {
    /// Summary of a run that leads.
    pub(super) fn for_leader(leader: &Leader) -> Self {
        Self {
            name: leader.group().to_string(),
            led: true,
            leader: std::process::id(),
            policy: leader.terms().policy.clone(),
            most_programs: leader.most_programs(),
        }
    }
}
