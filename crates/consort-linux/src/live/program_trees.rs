//! Programs as trees of processes: all that a command starts is one program.
//!
//! A program is identified by the pid of the process at the root of its tree. A process belongs to the
//! program of its parent; one whose parent is not known any more belongs to the program of this run's
//! own command, if it has one. The processes of a control group may be one program, whatever their
//! parents.

use crate::proc::ThreadUsers;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The users whose threads a program may have: threads of others are not managed although they are in
/// its tree of processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Admission {
    /// The one user whose threads are managed; `None` if root or the daemon's user attached the
    /// program, so that all are.
    only: Option<u32>,
    /// Users that have detached their threads.
    without: BTreeSet<u32>,
}

/// Reason for which a thread is not managed although its program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserExclusion {
    /// Its user has detached it.
    Detached,
    /// It acts for `user`, and another user, `asker`, attached the program.
    Foreign { user: u32, asker: u32 },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProgramTree {
    /// Name of the program in reports.
    pub(super) name: String,
    /// True if the program is managed; one that was let go is only kept apart from the others.
    pub(super) managed: bool,
    /// Policy that the program was given, if that is not the usual one.
    pub(super) policy: Option<Arc<str>>,
    admission: Admission,
}

/// All programs of a run, and their processes.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgramTrees {
    /// Root of the run's own command; `None` if it runs no command.
    own: Option<u32>,
    roots: BTreeMap<u32, ProgramTree>,
    /// Root of every process that is not one itself.
    within: BTreeMap<u32, u32>,
}

impl ProgramTrees {
    /// A set of one tree, that of the run's own command.
    pub(super) fn new(own: u32, name: String) -> Self {
        let mut trees = Self {
            own: Some(own),
            ..Self::default()
        };
        trees.insert_program(own, name);
        trees
    }

    /// Begins a tree; a process that was known by that pid is forgotten.
    pub(super) fn insert_program(&mut self, root: u32, name: String) {
        self.insert_with_policy(root, name, None);
    }

    pub(super) fn insert_with_policy(&mut self, root: u32, name: String, policy: Option<Arc<str>>) {
        self.within.remove(&root);
        let managed = true;
        let tree = ProgramTree {
            name,
            managed,
            policy,
            admission: Admission::default(),
        };
        self.roots.insert(root, tree);
    }

    /// Lets a program have threads of `asker` again, and of no other user if it is new; of all users
    /// if there is no `asker`. Returns true if that changes anything.
    pub(super) fn admit(&mut self, root: u32, asker: Option<u32>) -> bool {
        let Some(ProgramTree { admission, .. }) = self.roots.get_mut(&root) else {
            return false;
        };
        let before = admission.clone();
        match asker {
            None => *admission = Admission::default(),
            Some(uid) => drop(admission.without.remove(&uid)),
        }
        before != *admission
    }

    pub(super) fn restrict(&mut self, root: u32, only: Option<u32>) {
        if let Some(tree) = self.roots.get_mut(&root) {
            tree.admission.only = only;
        }
    }

    /// Notes that a user has detached its threads of a program. Returns false if that leaves none
    /// that the program may have.
    pub(super) fn withdraw(&mut self, root: u32, uid: u32) -> bool {
        let Some(ProgramTree { admission, .. }) = self.roots.get_mut(&root) else {
            return false;
        };
        admission.without.insert(uid);
        admission.only != Some(uid)
    }

    /// Returns true if a user has detached its threads of a program.
    pub(super) fn has_withdrawn(&self, root: u32, uid: u32) -> bool {
        let tree = self.roots.get(&root);
        tree.is_some_and(|tree| tree.admission.without.contains(&uid))
    }

    /// Returns true if a program may have threads of some users alone, so that those of each thread
    /// are to be read.
    pub(super) fn is_restricted(&self, root: u32) -> bool {
        let tree = self.roots.get(&root);
        tree.is_some_and(|tree| tree.admission != Admission::default())
    }

    /// Reason for which a program may not have a thread of these users, if any.
    pub(super) fn exclusion(&self, root: u32, users: ThreadUsers) -> Option<UserExclusion> {
        let Admission { only, without } = &self.roots.get(&root)?.admission;
        if without.iter().any(|&uid| users.other_than(uid).is_none()) {
            return Some(UserExclusion::Detached);
        }
        let asker = (*only)?;
        let user = users.other_than(asker)?;
        Some(UserExclusion::Foreign { user, asker })
    }

    /// Notes that a process belongs to a tree, whatever tree it was in.
    pub(super) fn assign_process(&mut self, pid: u32, root: u32) {
        if pid != root {
            self.roots.remove(&pid);
            self.within.insert(pid, root);
        }
    }

    /// Policies of the managed programs that were given one of their own, by root.
    pub(super) fn policies(&self) -> impl Iterator<Item = (u32, Arc<str>)> {
        let managed = self.roots.iter().filter(|(_, tree)| tree.managed);
        managed.filter_map(|(&root, tree)| Some((root, tree.policy.clone()?)))
    }

    pub(super) fn mark_unmanaged(&mut self, root: u32) {
        if let Some(tree) = self.roots.get_mut(&root) {
            tree.managed = false;
        }
    }

    /// Notes the tree that a process belongs to, and returns its root. `parents` are the processes
    /// above it as far as they are known, the nearest first.
    pub(super) fn assign_by_parents(
        &mut self,
        pid: u32,
        parents: impl IntoIterator<Item = u32>,
    ) -> Option<u32> {
        if let Some(root) = self.root_of(pid) {
            return Some(root);
        }
        let known = parents.into_iter().find_map(|parent| self.root_of(parent));
        let root = known.or(self.own)?;
        self.within.insert(pid, root);
        Some(root)
    }

    /// The root of the tree that a process belongs to.
    pub(super) fn root_of(&self, pid: u32) -> Option<u32> {
        let is_root = self.roots.contains_key(&pid).then_some(pid);
        is_root.or_else(|| self.within.get(&pid).copied())
    }

    /// Forgets a process that has ended. Roots stay, because processes that they started may still run.
    pub(super) fn forget(&mut self, pid: u32) {
        self.within.remove(&pid);
    }

    /// Forgets a program that has ended.
    pub(super) fn remove_program(&mut self, root: u32) {
        self.roots.remove(&root);
        self.within.retain(|_, of| *of != root);
    }

    /// Returns true if the program of this root is managed.
    pub(super) fn is_managed(&self, root: u32) -> bool {
        self.roots.get(&root).is_some_and(|tree| tree.managed)
    }

    /// Name of the program of this root; empty if there is none.
    pub(super) fn name(&self, root: u32) -> &str {
        self.roots.get(&root).map_or("", |tree| &tree.name)
    }

    /// Every program that was ever there, by the pid at its root, with its name.
    pub(super) fn names(&self) -> Vec<(u32, String)> {
        let roots = self.roots.iter();
        roots
            .map(|(&root, tree)| (root, tree.name.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn trees() -> ProgramTrees {
        let mut trees = ProgramTrees::new(10, "a".to_owned());
        trees.insert_program(20, "b".to_owned());
        trees
    }

    #[test]
    fn processes_belong_where_their_parents_do() {
        let mut trees = trees();
        assert_eq!(trees.assign_by_parents(21, [20]), Some(20));
        assert_eq!(trees.assign_by_parents(22, [99, 21]), Some(20));
        assert_eq!(trees.assign_by_parents(11, [10]), Some(10));
        assert_eq!(trees.root_of(22), Some(20));
    }

    #[test]
    fn orphans_belong_to_the_own_command() {
        assert_eq!(trees().assign_by_parents(30, [1]), Some(10));
        assert_eq!(ProgramTrees::default().assign_by_parents(30, [1]), None);
    }

    #[test]
    fn assigned_process_takes_its_children_along() {
        let mut trees = trees();
        trees.insert_with_policy(30, "c".to_owned(), Some("gang".into()));
        trees.assign_process(20, 30);
        assert_eq!(trees.assign_by_parents(23, [20]), Some(30));
        assert_eq!(trees.policies().collect::<Vec<_>>(), [(30, "gang".into())]);
    }

    fn users(uids: [u32; 4]) -> ThreadUsers {
        ThreadUsers::of_uids(uids)
    }

    #[test]
    fn restricted_program_excludes_other_users() {
        let mut trees = trees();
        assert!(!trees.is_restricted(20));
        trees.restrict(20, Some(7));
        assert!(trees.is_restricted(20));
        assert_eq!(trees.exclusion(20, users([7; 4])), None);
        let (user, asker) = (0, 7);
        let setuid = trees.exclusion(20, users([7, 0, 0, 0]));
        assert_eq!(setuid, Some(UserExclusion::Foreign { user, asker }));
        // Nothing is left of it once its only user has detached it.
        assert!(!trees.withdraw(20, 7));
        assert!(trees.admit(20, None), "root may have all of it");
        assert!(!trees.is_restricted(20));
    }

    #[test]
    fn user_detaches_only_its_own_threads() {
        let mut trees = trees();
        assert!(trees.withdraw(20, 7));
        assert!(trees.has_withdrawn(20, 7) && !trees.has_withdrawn(20, 8));
        let detached = Some(UserExclusion::Detached);
        assert_eq!(trees.exclusion(20, users([7; 4])), detached);
        assert_eq!(trees.exclusion(20, users([8; 4])), None);
        assert_eq!(trees.exclusion(20, users([7, 0, 0, 0])), None);
        assert!(trees.admit(20, Some(7)));
        assert!(!trees.admit(20, Some(7)), "it is admitted already");
        assert_eq!(trees.exclusion(20, users([7; 4])), None);
    }

    #[test]
    fn reused_pid_is_another_process() {
        let mut trees = trees();
        trees.assign_by_parents(21, [20]);
        trees.forget(21);
        assert_eq!(trees.assign_by_parents(21, [10]), Some(10));
        trees.insert_program(21, "c".to_owned());
        assert_eq!(trees.root_of(21), Some(21));
    }

    #[test]
    fn unmanaged_program_keeps_its_processes() {
        let mut trees = trees();
        trees.mark_unmanaged(20);
        assert_eq!(trees.assign_by_parents(23, [20]), Some(20));
        assert!(!trees.is_managed(20));
        assert!(trees.is_managed(10));
    }

    proptest! {
        #[test]
        fn every_process_has_exactly_one_root(
            births in prop::collection::vec((0u32..40, 0u32..40), 0..60),
        ) {
            let mut trees = trees();
            for (pid, parent) in births {
                let root = trees.assign_by_parents(pid, [parent]);
                prop_assert_eq!(trees.root_of(pid), root);
                prop_assert!(trees.names().iter().any(|(pid, _)| Some(*pid) == root));
            }
        }
    }
}
