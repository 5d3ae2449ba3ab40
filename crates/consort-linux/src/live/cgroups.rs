//! Control groups that are managed as programs, with the processes that enter and leave them.

use super::Live;
use super::error::AttachError;
use crate::cgroup::{CgroupPattern, Found, Rule, Rules};
use crate::control::{Attachment, Peer};
use crate::proc::name_of;
use consort_core::{Sample, ThreadId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two looks at the control groups.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The control groups of a run that are managed.
#[derive(Default)]
pub(super) struct Groups {
    /// Rules of the configuration.
    configured: Rules,
    /// Rules of requests since; they take precedence.
    asked: Rules,
    /// Root of each program that is a group, by the group's path.
    programs: BTreeMap<String, u32>,
    /// Time of the next look at the groups; none for one at once.
    next_look: Option<Instant>,
}

impl Groups {
    fn rules(&self) -> Rules {
        let join = |a: &Rules, b: &Rules| Rules {
            manage: a.manage.iter().chain(&b.manage).cloned().collect(),
            exclude: a.exclude.iter().chain(&b.exclude).cloned().collect(),
        };
        join(&self.asked, &self.configured)
    }

    /// Returns true if any group may be managed.
    pub(super) fn manages(&self) -> bool {
        self.configured.manages() || self.asked.manages()
    }

    fn excludes(&self) -> bool {
        !(self.configured.exclude.is_empty() && self.asked.exclude.is_empty())
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next_look.is_none_or(|next| now >= next)
            && (self.manages() || self.excludes() || !self.programs.is_empty())
    }
}

impl Live {
    /// Manages these control groups from now on, and lets go of those that no longer match.
    pub fn set_rules(&mut self, rules: Rules) {
        self.residence.groups_mut().configured = rules;
        self.residence.groups_mut().next_look = None;
    }

    /// Looks up the processes of each group in `/sys`, when it is time to, and follows the changes.
    pub(super) fn follow_groups(&mut self) {
        let now = Instant::now();
        if !self.residence.groups().is_due(now) {
            return;
        }
        let rules = self.residence.groups().rules();
        let found = rules.find(self.site.root());
        let paths: BTreeSet<&str> = found.iter().map(|found| found.path.as_str()).collect();
        let programs = &self.residence.groups().programs;
        let gone = programs
            .iter()
            .filter(|(path, _)| !paths.contains(path.as_str()));
        let gone: Vec<(String, u32)> = gone.map(|(path, root)| (path.clone(), *root)).collect();
        for (path, root) in gone {
            self.residence.groups_mut().programs.remove(&path);
            self.part_with_program(root);
        }
        for group in found {
            self.follow_group(&group);
        }
        self.let_excluded_go(&rules);
        self.residence.groups_mut().next_look = Some(Instant::now() + LOOK_EVERY);
    }

    fn follow_group(&mut self, group: &Found) {
        let pids = group.pids.iter().copied();
        let members: BTreeSet<u32> = pids.filter(|&pid| pid > 0).collect();
        let Some(root) = self.root_of_group(group, &members) else {
            return;
        };
        for &pid in &members {
            self.enter_group(pid, root);
        }
        let within = self.roster.processes_of(consort_core::ProgramId(root));
        for pid in within.difference(&members) {
            self.leave_group(*pid);
        }
    }

    /// Pid that identifies a group as a program: that of a process that was in it first; none where
    /// no process in it can be managed.
    fn root_of_group(&mut self, group: &Found, members: &BTreeSet<u32>) -> Option<u32> {
        // A group that was empty for a while begins anew.
        let known = self.residence.groups().programs.get(&group.path).copied();
        if let Some(root) = known.filter(|&root| self.roster.trees().is_managed(root)) {
            return Some(root);
        }
        let free = |pid: &&u32| !self.roster.is_managed(**pid) && self.is_manageable(**pid);
        let root = *members.iter().find(free)?;
        let (path, policy) = (group.path.clone(), group.policy.clone());
        self.roster
            .trees_mut()
            .plant_with(root, path.clone(), policy);
        self.residence.groups_mut().programs.insert(path, root);
        self.watch_process(root, false);
        Some(root)
    }

    /// Takes in a process that is in a group, unless it was attached by itself.
    fn enter_group(&mut self, pid: u32, root: u32) {
        let now = self.roster.trees().root_of(pid);
        let is_group = |root| {
            self.residence
                .groups()
                .programs
                .values()
                .any(|&g| g == root)
        };
        let elsewhere = now.is_some_and(|of| self.roster.trees().is_managed(of) && !is_group(of));
        if now == Some(root) || elsewhere || !self.is_manageable(pid) {
            return;
        }
        let was_managed = now.is_some_and(|root| self.roster.trees().is_managed(root));
        self.roster.trees_mut().graft(pid, root);
        self.watch_process(pid, was_managed);
    }

    /// Lets go of a process that has left its group.
    fn leave_group(&mut self, pid: u32) {
        let name = name_of(self.site.root(), pid).unwrap_or_default();
        self.free(|id| id.pid == pid);
        self.roster.trees_mut().plant(pid, name);
        self.roster.trees_mut().let_go(pid);
    }

    fn let_excluded_go(&mut self, rules: &Rules) {
        if rules.exclude.is_empty() {
            return;
        }
        let pids: BTreeSet<u32> = self.roster.ids().map(|id| id.pid).collect();
        for pid in pids {
            if self.roster.is_managed(pid) && self.is_excluded(pid, rules) {
                self.leave_group(pid);
            }
        }
    }

    fn is_excluded(&self, pid: u32, rules: &Rules) -> bool {
        let path = self
            .site
            .root()
            .join("proc")
            .join(pid.to_string())
            .join("cgroup");
        let cgroup = crate::read::text(&path).unwrap_or_default();
        rules.excludes(&cgroup)
    }

    fn is_manageable(&self, pid: u32) -> bool {
        self.check(pid).is_ok()
    }

    /// Puts threads back to their original masks and forgets them.
    pub(super) fn free(&mut self, is_its: impl Fn(&ThreadId) -> bool) {
        let its: Vec<ThreadId> = self.roster.ids().filter(is_its).collect();
        self.warnings.extend(self.hands.free(&its, &self.roster));
        for id in its {
            self.part_with(id, Sample::default());
        }
    }

    /// Attaches the processes and groups that a peer asks for: all of them, or none.
    pub(super) fn attach_for(&mut self, peer: Peer, wanted: &Attachment) -> Result<Value, String> {
        let patterns = patterns(peer, wanted)?;
        let rules = self.residence.groups().rules();
        for &pid in &wanted.pids {
            self.check_owner(peer, pid).map_err(|e| e.to_string())?;
            self.check(pid).map_err(|e| e.to_string())?;
            if self.is_excluded(pid, &rules) {
                return Err(format!(
                    "process {pid} is in a control group that is excluded"
                ));
            }
        }
        let policy: Option<Arc<str>> = wanted.policy.as_deref().map(Arc::from);
        let mut attached = Vec::new();
        for &pid in &wanted.pids {
            match self.attach(pid, policy.clone()) {
                Ok(()) | Err(AttachError::Managed(_)) => attached.push(pid),
                Err(error) => return Err(error.to_string()),
            }
        }
        for cgroup in patterns {
            self.attach_cgroup(cgroup, policy.clone());
        }
        Ok(json!({ "attached": attached, "cgroups": wanted.cgroups }))
    }

    /// Manages the control groups of a pattern from now on.
    pub fn attach_cgroup(&mut self, cgroup: CgroupPattern, policy: Option<Arc<str>>) {
        let asked = &mut self.residence.groups_mut().asked;
        asked.exclude.retain(|other| *other != cgroup);
        asked.manage.retain(|rule| rule.cgroup != cgroup);
        asked.manage.push(Rule {
            cgroup,
            policy,
            priority: i64::MAX,
        });
        self.residence.groups_mut().next_look = None;
        self.follow_groups();
    }

    /// Detaches the processes and groups that a peer asks for.
    pub(super) fn detach_for(&mut self, peer: Peer, wanted: &Attachment) -> Result<Value, String> {
        let patterns = patterns(peer, wanted)?;
        for &pid in &wanted.pids {
            self.check_owner(peer, pid).map_err(|e| e.to_string())?;
            if !self.roster.is_managed(pid) {
                return Err(format!("process {pid} is not managed"));
            }
        }
        for &pid in &wanted.pids {
            self.detach(pid);
        }
        let groups = self.residence.groups_mut();
        for cgroup in patterns {
            groups.asked.manage.retain(|rule| rule.cgroup != cgroup);
            groups.asked.exclude.push(cgroup);
        }
        groups.next_look = None;
        self.follow_groups();
        Ok(json!({ "detached": wanted.pids, "cgroups": wanted.cgroups }))
    }
}

/// Patterns of the control groups that a peer names; an error if it may name none.
fn patterns(peer: Peer, wanted: &Attachment) -> Result<Vec<CgroupPattern>, String> {
    if !wanted.cgroups.is_empty() && !peer.is_master() {
        return Err(format!(
            "control groups are for root and the daemon's own user, and user {} asks; attach \
             processes of your own by their ids",
            peer.uid
        ));
    }
    let texts = wanted.cgroups.iter();
    let patterns = texts.map(|text| text.parse::<CgroupPattern>().map_err(|e| e.to_string()));
    patterns.collect()
}
