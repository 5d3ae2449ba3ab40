//! Control groups that are managed as programs, with the processes that enter and leave them.

use super::clock::own_cpu_ns;
use super::group_review::GroupReview;
use super::{AttachError, LiveMachine};
use crate::cgroup::{CgroupPattern, CgroupRule, CgroupRules, ProgramGroup, escape_for_display};
use crate::proc::name_of;
use crate::protocol::{AttachTargets, Peer};
use consort_core::{Sample, ThreadId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Least time between two looks at the control groups.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Least ratio of the time between two looks to the CPU time of one: a pattern that begins with `**`
/// visits all groups of the host.
const PAUSE_PER_LOOK: u32 = 200;

/// The control groups of a run that are managed.
#[derive(Default)]
pub(super) struct ManagedGroups {
    /// Rules of the configuration.
    configured: CgroupRules,
    /// Rules of requests since; they take precedence.
    requested: CgroupRules,
    /// Both together.
    pub(super) rules: CgroupRules,
    /// Root of each program that is a group, by the group's path.
    programs: BTreeMap<String, u32>,
    /// Processes that have some of their threads in groups that are managed.
    pub(super) parts: BTreeSet<u32>,
    /// Time of the next look at the groups; `None` for one at once.
    next_look: Option<Instant>,
    /// Review of threads that groups keep out.
    pub(super) review: GroupReview,
}

/// Outcome of attaching the control groups of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupAttachOutcome {
    /// There are such groups with processes, and they are managed.
    Managed,
    /// There are none yet. Groups that appear later will be managed.
    Awaited,
    /// All of them are excluded.
    Excluded,
}

impl ManagedGroups {
    /// Changes rules, joins both sets again, and looks at the groups at once.
    fn change_rules(&mut self, change: impl FnOnce(&mut CgroupRules, &mut CgroupRules)) {
        change(&mut self.configured, &mut self.requested);
        let (requested, configured) = (&self.requested, &self.configured);
        self.rules = CgroupRules {
            manage: requested
                .manage
                .iter()
                .chain(&configured.manage)
                .cloned()
                .collect(),
            exclude: requested
                .exclude
                .iter()
                .chain(&configured.exclude)
                .cloned()
                .collect(),
        };
        self.next_look = None;
        self.review.is_of_all = true;
    }
}

impl LiveMachine {
    /// Manages these control groups from now on, and lets go of the ones that no longer match.
    pub fn set_rules(&mut self, rules: CgroupRules) {
        let groups = &mut self.attachments.groups;
        groups.change_rules(|configured, _| *configured = rules);
    }

    /// Looks up the processes of each group in `/sys`, when it is time to, and follows the changes.
    pub(super) fn follow_groups(&mut self) {
        let groups = &self.attachments.groups;
        let has_rules = groups.rules.manages() || !groups.rules.exclude.is_empty();
        let is_due = groups.next_look.is_none_or(|next| Instant::now() >= next);
        // Programs whose rules were removed are still to be released.
        if !is_due || (!has_rules && groups.programs.is_empty()) {
            return;
        }
        let begun_ns = own_cpu_ns();
        let search = self.attachments.groups.rules.find(self.site.root());
        self.warnings.extend(search.warning.clone());
        // First, because processes may have moved from a group that is gone to one that was found.
        let found: BTreeSet<&str> = search.found.iter().map(|f| f.path.as_str()).collect();
        for (path, root) in self.attachments.groups.programs.clone() {
            if let Some(error) = search.error_of(&path) {
                // An unreadable group is not gone: it stays as it is until the next look.
                self.warnings.insert(format!(
                    "control group {} cannot be looked up: {error}; its processes stay as they are",
                    escape_for_display(&path)
                ));
            } else if !found.contains(path.as_str()) {
                self.attachments.groups.programs.remove(&path);
                self.release_program(root);
            }
        }
        let parts = search.found.iter().flat_map(|group| &group.parts).copied();
        let groups = &mut self.attachments.groups;
        // If some groups cannot be read, the processes in them stay as they are.
        if search.unseen.is_empty() {
            groups.parts.clear();
        }
        groups.parts.extend(parts);
        for group in &search.found {
            self.follow_group(group, search.error_of(&group.path).is_none());
        }
        self.review_threads();
        let took = Duration::from_nanos(own_cpu_ns().saturating_sub(begun_ns));
        let pause = LOOK_EVERY.max(took * PAUSE_PER_LOOK);
        self.attachments.groups.next_look = Some(Instant::now() + pause);
    }

    /// Follows the changes of a group. Processes that it has lost are released only if all of the group
    /// `is_seen`.
    fn follow_group(&mut self, group: &ProgramGroup, is_seen: bool) {
        let Some(root) = self.root_of_group(group) else {
            return;
        };
        for &pid in &group.pids {
            self.manage_group_process(pid, root);
        }
        if !is_seen {
            return;
        }
        let within = self.table.processes_of(consort_core::ProgramId(root));
        for pid in within.difference(&group.pids) {
            self.release_group_process(*pid);
        }
    }

    /// Pid that identifies a group as a program: that of a process that was in it first; `None` if
    /// no process in it can be managed.
    fn root_of_group(&mut self, group: &ProgramGroup) -> Option<u32> {
        // A group that was empty for a while is a new program.
        let known = self.attachments.groups.programs.get(&group.path).copied();
        if let Some(root) = known.filter(|&root| self.table.trees.is_managed(root)) {
            return Some(root);
        }
        let free = |pid: &&u32| !self.table.is_managed(**pid) && self.is_manageable(**pid);
        let root = *group.pids.iter().find(free)?;
        let policy = group.policy.clone();
        self.table
            .trees
            .insert_with_policy(root, group.name(), policy);
        let programs = &mut self.attachments.groups.programs;
        programs.insert(group.path.clone(), root);
        self.watch_process(root, false);
        Some(root)
    }

    /// Takes in a process that is in a group, unless it was attached by itself.
    fn manage_group_process(&mut self, pid: u32, root: u32) {
        let now = self.table.trees.root_of(pid);
        let is_group = |root| {
            self.attachments
                .groups
                .programs
                .values()
                .any(|&g| g == root)
        };
        let elsewhere = now.is_some_and(|of| self.table.trees.is_managed(of) && !is_group(of));
        if now == Some(root) || elsewhere || !self.is_manageable(pid) {
            return;
        }
        let was_managed = now.is_some_and(|root| self.table.trees.is_managed(root));
        self.table.trees.assign_process(pid, root);
        self.watch_process(pid, was_managed);
    }

    /// Lets go of a process that has left its group.
    pub(super) fn release_group_process(&mut self, pid: u32) {
        let name = name_of(self.site.root(), pid).unwrap_or_default();
        self.release_threads(|id| id.pid == pid);
        // As a program of its own that is not managed, so that its children do not belong to the
        // group.
        self.table.trees.insert_program(pid, name);
        self.table.trees.mark_unmanaged(pid);
    }

    fn is_manageable(&self, pid: u32) -> bool {
        self.check(pid).is_ok() && self.process_exclusion(pid) == Ok(None)
    }

    /// Puts threads back to their original masks and forgets them.
    pub(super) fn release_threads(&mut self, is_its: impl Fn(&ThreadId) -> bool) {
        let its: Vec<ThreadId> = self.table.ids().filter(is_its).collect();
        self.warnings
            .extend(self.actuators.restore_masks(&its, &self.table));
        for id in its {
            self.retire_thread(id, Sample::default());
        }
    }

    /// Attaches the processes and groups that a peer has named: all of them, or none.
    pub(super) fn attach_for_peer(
        &mut self,
        peer: Peer,
        wanted: &AttachTargets,
    ) -> Result<Value, String> {
        let patterns = patterns(peer, wanted)?;
        // All are checked before the first is attached, so that nothing has changed after an error.
        for &pid in &wanted.pids {
            self.check_owner(peer, pid).map_err(|e| e.to_string())?;
            self.check(pid).map_err(|e| e.to_string())?;
            let excluded = self.process_exclusion(pid).map_err(|error| {
                format!(
                    "cannot attach process {pid}: its control group cannot be looked up: {error}"
                )
            })?;
            if let Some(group) = excluded {
                let group = escape_for_display(&group);
                return Err(format!(
                    "cannot attach process {pid}: its control group {group} is excluded"
                ));
            }
        }
        let policy: Option<Arc<str>> = wanted.policy.as_deref().map(Arc::from);
        let asker = (!peer.is_master()).then_some(peer.uid);
        let mut attached = Vec::new();
        for &pid in &wanted.pids {
            match self.attach_for_user(pid, policy.clone(), asker) {
                Ok(()) | Err(AttachError::Managed(_)) => attached.push(pid),
                Err(error) => return Err(error.to_string()),
            }
        }
        let mut texts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for cgroup in patterns {
            let text = cgroup.as_str().to_owned();
            let key = match self.attach_cgroup(cgroup, policy.clone()) {
                GroupAttachOutcome::Managed => continue,
                GroupAttachOutcome::Awaited => "awaited",
                GroupAttachOutcome::Excluded => "excluded",
            };
            texts.entry(key).or_default().push(text);
        }
        let awaited = texts.remove("awaited").unwrap_or_default();
        let excluded = texts.remove("excluded").unwrap_or_default();
        Ok(json!({
            "attached": attached,
            "cgroups": wanted.cgroups,
            "awaited": awaited,
            "excluded": excluded,
        }))
    }

    /// Manages the control groups of a pattern from now on.
    pub fn attach_cgroup(
        &mut self,
        cgroup: CgroupPattern,
        policy: Option<Arc<str>>,
    ) -> GroupAttachOutcome {
        let rule = CgroupRule {
            cgroup,
            policy,
            priority: i64::MAX,
        };
        let groups = &mut self.attachments.groups;
        groups.change_rules(|_, requested| {
            requested.exclude.retain(|other| *other != rule.cgroup);
            requested.manage.retain(|other| other.cgroup != rule.cgroup);
            requested.manage.push(rule.clone());
        });
        self.follow_groups();
        let mut managed = self.attachments.groups.programs.keys();
        if managed.any(|path| rule.cgroup.matches(path)) {
            return GroupAttachOutcome::Managed;
        }
        let alone = CgroupRules {
            manage: vec![rule],
            exclude: Vec::new(),
        };
        let is_excluded =
            |found: &ProgramGroup| self.attachments.groups.rules.is_excluded(&found.path);
        let there = alone.find(self.site.root()).found;
        match !there.is_empty() && there.iter().all(is_excluded) {
            true => GroupAttachOutcome::Excluded,
            false => GroupAttachOutcome::Awaited,
        }
    }

    /// Detaches the processes and groups that a peer has named.
    pub(super) fn detach_for_peer(
        &mut self,
        peer: Peer,
        wanted: &AttachTargets,
    ) -> Result<Value, String> {
        let patterns = patterns(peer, wanted)?;
        for &pid in &wanted.pids {
            self.check_owner(peer, pid).map_err(|e| e.to_string())?;
            let trees = &self.table.trees;
            let root = trees.root_of(pid).filter(|&root| trees.is_managed(root));
            if root.is_none_or(|root| trees.has_withdrawn(root, peer.uid)) {
                return Err(format!("process {pid} is not managed"));
            }
            let root = self.table.program_of(pid).0;
            let mut groups = self.attachments.groups.programs.iter();
            if let Some((path, _)) = groups.find(|(_, its)| **its == root) {
                let group = escape_for_display(path);
                return Err(format!(
                    "cannot detach process {pid}: it is managed with its control group {group}, which \
                     would take it in again; detach the group (--cgroup {group}) or move the process"
                ));
            }
        }
        let before = self.table.processes();
        let mut others = BTreeSet::new();
        for &pid in &wanted.pids {
            let program = self.table.program_of(pid);
            let mut its = self.table.processes_of(program);
            its.retain(|&pid| self.check_owner(peer, pid).is_ok());
            others.extend(its);
            match peer.is_master() {
                true => drop(self.detach(pid)),
                false => self.withdraw(pid, peer.uid),
            }
        }
        others.retain(|pid| !wanted.pids.contains(pid));
        // Excluded, and not only dropped: a rule of the configuration may name the same groups.
        let groups = &mut self.attachments.groups;
        groups.change_rules(|_, requested| {
            for cgroup in &patterns {
                requested.manage.retain(|rule| rule.cgroup != *cgroup);
                requested.exclude.push(cgroup.clone());
            }
        });
        self.follow_groups();
        // Programs of groups above stay managed, without the groups that are excluded now.
        let programs = self.attachments.groups.programs.keys();
        let is_above = |path: &&String| patterns.iter().any(|p| p.may_lie_below(path));
        let remaining: Vec<String> = programs
            .filter(is_above)
            .map(|path| escape_for_display(path))
            .collect();
        // Those of one user may be part of a program that stays managed for others.
        let mut released: BTreeSet<u32> = { before.into_iter() }
            .filter(|&pid| !self.table.is_managed(pid))
            .collect();
        released.extend(wanted.pids.iter().chain(&others));
        Ok(json!({
            "detached": wanted.pids,
            "cgroups": wanted.cgroups,
            "also": others,
            "remaining": remaining,
            "released": released,
        }))
    }
}

/// Patterns of the control groups that a peer names; an error if it may name none.
fn patterns(peer: Peer, wanted: &AttachTargets) -> Result<Vec<CgroupPattern>, String> {
    if !wanted.cgroups.is_empty() && !peer.is_master() {
        return Err(format!(
            "user {} cannot name control groups: only root and the daemon's own user may; attach \
             processes of your own by their ids",
            peer.uid
        ));
    }
    let texts = wanted.cgroups.iter();
    let patterns = texts.map(|text| text.parse::<CgroupPattern>().map_err(|e| e.to_string()));
    patterns.collect()
}
