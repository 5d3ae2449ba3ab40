//! The processes whose records are looked at, where events record all that runs on a CPU.
//!
//! A process that a member starts is a member from its FORK record on. The record is in the ring of
//! the CPU that the parent ran on, and the child's first records may be in another ring, so that
//! the beginnings and ends in all rings are applied in order of time before anything else is
//! judged.
//!
//! A CPU may stop between the moment that a record names and its publication, for 100 ms and more where
//! a hypervisor takes the CPU away. Records of what the new process has started meanwhile may have
//! been dropped by then as a stranger's, so that such a late beginning counts as a loss.

use crate::perf::record::{PerfRecord, TaskRecord};
use std::collections::{BTreeMap, HashMap};

/// The processes that are sampled, and for how long each was one of them.
#[derive(Debug, Default)]
pub(super) struct SampledProcesses {
    members: HashMap<u32, SampledProcess>,
    /// Trees of the processes that become members when they execute their program.
    awaited: BTreeMap<u32, u32>,
    /// Beginnings, ends and executed programs that are not applied yet.
    changes: Vec<MembershipChange>,
    /// Time up to which records have been judged.
    judged_ns: u64,
    /// Number of processes whose record of becoming a member was late.
    late: u64,
}

#[derive(Clone, Copy, Debug)]
struct SampledProcess {
    /// Root of the tree of processes that it belongs to.
    tree: u32,
    since_ns: u64,
    until_ns: u64,
    /// Number of its threads; `None` if it had some before it became a member.
    threads: Option<u32>,
}

/// A record that may change who is a member.
#[derive(Clone, Copy, Debug)]
enum MembershipChange {
    Begin(TaskRecord),
    End(TaskRecord),
    Execute { pid: u32, time_ns: u64 },
}

impl MembershipChange {
    fn time_ns(&self) -> u64 {
        match self {
            Self::Begin(task) | Self::End(task) => task.time_ns,
            Self::Execute { time_ns, .. } => *time_ns,
        }
    }
}

impl SampledProcesses {
    /// Returns true if there are no members.
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.awaited.is_empty()
    }

    /// Makes a process a member when it executes its program.
    pub(super) fn await_exec(&mut self, pid: u32, tree: u32) {
        self.awaited.insert(pid, tree);
    }

    /// Makes a process a member from this time on, unless it is one.
    pub(super) fn admit(&mut self, pid: u32, tree: u32, since_ns: u64) {
        // Threads and processes outside the PID namespace have the number 0, as the idle ones.
        if pid == 0 || self.awaited.contains_key(&pid) {
            return;
        }
        let member = SampledProcess {
            tree,
            since_ns,
            until_ns: u64::MAX,
            threads: None,
        };
        let known = self.members.entry(pid).or_insert(member);
        if known.until_ns != u64::MAX {
            *known = member;
        }
    }

    /// Strikes off all processes of a tree.
    pub(super) fn dismiss(&mut self, tree: u32) {
        self.members.retain(|_, member| member.tree != tree);
        self.awaited.retain(|_, of| *of != tree);
    }

    /// Strikes off members whose end was among lost records.
    pub(super) fn retain_known(&mut self, is_known: impl Fn(u32) -> bool) {
        self.members.retain(|&pid, _| is_known(pid));
    }

    /// Notes a record that may change who is a member.
    pub(super) fn note_record(&mut self, bytes: &[u8]) {
        let change = match PerfRecord::parse(bytes) {
            Ok(PerfRecord::Fork(task)) => MembershipChange::Begin(task),
            Ok(PerfRecord::Exit(task)) => MembershipChange::End(task),
            Ok(PerfRecord::Comm {
                pid,
                exec: true,
                time_ns,
                ..
            }) => MembershipChange::Execute { pid, time_ns },
            _ => return,
        };
        self.changes.push(change);
    }

    /// Applies what was noted, in order of time.
    pub(super) fn apply(&mut self) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.sort_by_key(MembershipChange::time_ns);
        for change in changes {
            match change {
                MembershipChange::Begin(task) => self.begin(task),
                MembershipChange::End(task) => self.end(task),
                MembershipChange::Execute { pid, time_ns } => self.execute(pid, time_ns),
            }
        }
    }

    /// Ends a round in which records up to a time were judged: forgets members that had ended by
    /// then. Returns the number of processes that became members too late for some of their records.
    pub(super) fn end_round(&mut self, until_ns: u64) -> u64 {
        self.members.retain(|_, member| member.until_ns > until_ns);
        self.judged_ns = until_ns;
        std::mem::take(&mut self.late)
    }

    /// Returns true if the process was a member at this time.
    pub(super) fn contains(&self, pid: u32, time_ns: u64) -> bool {
        let member = self.members.get(&pid);
        member.is_some_and(|m| m.since_ns <= time_ns && time_ns <= m.until_ns)
    }

    fn begin(&mut self, task: TaskRecord) {
        if task.pid == task.parent_pid {
            if let Some(member) = self.members.get_mut(&task.pid) {
                member.threads = member.threads.map(|threads| threads + 1);
            }
            return;
        }
        let parent = self.members.get(&task.parent_pid);
        let is_child = parent.is_some_and(|p| p.since_ns <= task.time_ns);
        let tree = parent.map(|parent| parent.tree).filter(|_| is_child);
        match tree {
            Some(tree) => {
                let child = SampledProcess {
                    tree,
                    since_ns: task.time_ns,
                    until_ns: u64::MAX,
                    threads: Some(1),
                };
                self.members.insert(task.pid, child);
                self.late += u64::from(task.time_ns <= self.judged_ns);
            }
            // A stranger has the number of a member whose end was lost.
            None => {
                if let Some(old) = self.members.get_mut(&task.pid)
                    && old.since_ns < task.time_ns
                {
                    old.until_ns = old.until_ns.min(task.time_ns - 1);
                }
            }
        }
    }

    fn end(&mut self, task: TaskRecord) {
        let Some(member) = self.members.get_mut(&task.pid) else {
            return;
        };
        member.threads = member.threads.map(|threads| threads.saturating_sub(1));
        if member.threads == Some(0) {
            member.until_ns = member.until_ns.min(task.time_ns);
        }
    }

    /// The program's other threads end as it is executed.
    fn execute(&mut self, pid: u32, time_ns: u64) {
        if let Some(tree) = self.awaited.remove(&pid) {
            self.admit(pid, tree, time_ns);
            self.late += u64::from(time_ns <= self.judged_ns);
        }
        if let Some(member) = self.members.get_mut(&pid) {
            member.threads = Some(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(pid: u32, tid: u32, parent_pid: u32, time_ns: u64) -> TaskRecord {
        TaskRecord {
            pid,
            tid,
            parent_pid,
            parent_tid: parent_pid,
            time_ns,
        }
    }

    fn after(changes: &[MembershipChange]) -> SampledProcesses {
        let mut members = SampledProcesses::default();
        members.admit(10, 10, 100);
        members.changes.extend(changes);
        members.apply();
        members
    }

    #[test]
    fn descendants_are_members_in_any_ring_order() {
        let grandchild = MembershipChange::Begin(task(12, 12, 11, 300));
        let child = MembershipChange::Begin(task(11, 11, 10, 200));
        let members = after(&[grandchild, child]);
        let at = |pid, time| members.contains(pid, time);
        assert!(at(11, 200) && at(12, 300));
        assert!(!at(11, 199) && !at(12, 299) && !at(13, 500));
    }

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let begin = MembershipChange::Begin(task(11, 11, 10, 200));
        let second = MembershipChange::Begin(task(11, 15, 11, 210));
        let leader_ends = MembershipChange::End(task(11, 11, 10, 220));
        let members = after(&[begin, second, leader_ends]);
        assert!(members.contains(11, 500));
        let last_ends = MembershipChange::End(task(11, 15, 10, 400));
        let mut members = after(&[begin, second, leader_ends, last_ends]);
        assert!(members.contains(11, 400) && !members.contains(11, 401));
        members.end_round(1_000);
        assert!(!members.contains(11, 300) && members.contains(10, 300));
    }

    #[test]
    fn late_record_of_child_counts_as_loss() {
        let mut members = after(&[MembershipChange::Begin(task(11, 11, 10, 200))]);
        assert_eq!(members.end_round(1_000), 0);
        // What 12 did meanwhile was dropped, and what strangers do is not looked at.
        for change in [task(12, 12, 11, 900), task(77, 77, 76, 900)] {
            members.changes.push(MembershipChange::Begin(change));
        }
        members.apply();
        assert_eq!(members.end_round(2_000), 1);
        members
            .changes
            .push(MembershipChange::Begin(task(13, 13, 11, 2_100)));
        members.apply();
        assert_eq!(members.end_round(3_000), 0);
    }

    #[test]
    fn number_reused_by_another_program_is_no_member() {
        let members = after(&[MembershipChange::Begin(task(10, 10, 77, 500))]);
        assert!(members.contains(10, 499) && !members.contains(10, 500));
    }

    #[test]
    fn launched_process_is_member_from_exec() {
        let mut members = SampledProcesses::default();
        members.await_exec(10, 0);
        members.admit(10, 10, 50);
        members
            .changes
            .push(MembershipChange::Begin(task(11, 11, 10, 90)));
        members.changes.push(MembershipChange::Execute {
            pid: 10,
            time_ns: 100,
        });
        members.apply();
        assert!(!members.contains(10, 99) && members.contains(10, 100));
        assert!(!members.contains(11, 95));
    }

    #[test]
    fn a_tree_is_dismissed_with_its_descendants() {
        let mut members = after(&[MembershipChange::Begin(task(11, 11, 10, 200))]);
        members.admit(20, 20, 100);
        members.dismiss(10);
        assert!(!members.contains(11, 300) && members.contains(20, 300));
    }

    #[test]
    fn idle_and_other_namespaces_are_never_members() {
        let mut members = SampledProcesses::default();
        members.admit(0, 0, 0);
        assert!(!members.contains(0, 1) && members.is_empty());
    }
}
