//! The group of a run, as a report tells it.

use consort_linux::group::GroupName;
use consort_linux::live::MembershipSummary;
use serde::Serialize;

/// The group of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct GroupReport {
    pub(crate) name: String,
    /// `leader` when this run managed the group in the end, else `member`.
    pub(crate) role: &'static str,
    /// Pid of the last leader.
    pub(crate) leader: u32,
    /// Most programs at a time; of a member, as far as it knows.
    pub(crate) most_programs: usize,
}

impl GroupReport {
    /// Warns of a group that never had a second program; none otherwise.
    pub(crate) fn warning(&self) -> Option<String> {
        (self.most_programs < 2 && !self.is_daemon_group()).then(|| {
            format!(
                "nobody shared group {0}: the command had the machine to itself; start others \
                 with --group {0} meanwhile",
                self.name
            )
        })
    }

    fn is_daemon_group(&self) -> bool {
        self.name == GroupName::for_daemon().as_str()
    }

    /// One sentence for people.
    pub(super) fn sentence(&self) -> String {
        let (name, most) = (&self.name, self.most_programs);
        if self.is_daemon_group() {
            return format!(
                "managed by the daemon, process {}; `consort status` tells what it sees",
                self.leader
            );
        }
        match self.role {
            "leader" => format!("group {name}: led by this run, up to {most} programs at a time"),
            _ => format!(
                "group {name}: managed by its leader, process {}, whose report has the threads",
                self.leader
            ),
        }
    }
}

impl From<MembershipSummary> for GroupReport {
    fn from(summary: MembershipSummary) -> Self {
        Self {
            name: summary.name,
            role: if summary.led { "leader" } else { "member" },
            leader: summary.leader,
            most_programs: summary.most_programs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(most_programs: usize) -> GroupReport {
        GroupReport::from(MembershipSummary {
            name: "suite".to_owned(),
            led: true,
            leader: 7,
            policy: "gang".to_owned(),
            most_programs,
        })
    }

    #[test]
    fn a_group_of_one_is_warned_of() {
        assert!(
            group(1)
                .warning()
                .unwrap()
                .contains("nobody shared group suite")
        );
        assert_eq!(group(2).warning(), None);
    }
}
