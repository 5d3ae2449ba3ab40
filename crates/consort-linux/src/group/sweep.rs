//! Deletion of files that killed leaders have left.
//!
//! A lock is deleted only by its holder, and counts only while its file has its name
//! ([`super::lock`]): so a sweep does not disturb a run that is about to lead, nor the other way
//! round.

use super::lock::{GroupFolder, group_from_file_name};
use crate::enact::RuntimeDir;
use std::collections::BTreeSet;
use std::path::Path;

/// Deletes, from a folder for journals, locks and sockets of groups that no run leads.
pub(crate) fn delete_stale_files(dir: &Path) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let groups: BTreeSet<String> = names
        .filter_map(|name| group_from_file_name(&name))
        .collect();
    for group in groups {
        let (Ok(dir), Ok(name)) = (RuntimeDir::open(dir), group.parse()) else {
            continue;
        };
        // To let go of the lock is to delete the files.
        match GroupFolder::from_dir(dir, name).lock() {
            Ok(Ok(lock)) => drop(lock),
            Ok(Err(_)) => {}
            Err(error) => tracing::warn!(%error, "a group's files are left"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lock::GroupFolder;
    use super::*;
    use std::os::unix::net::UnixListener;

    fn names(dir: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(dir.path()).unwrap().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_nobody_holds_is_deleted_and_what_somebody_holds_stays() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["group-dead.lock", "group-.lock", "x.journal"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        drop(UnixListener::bind(dir.path().join("group-dead.socket")).unwrap());
        let folder = GroupFolder::new(&[dir.path().to_owned()], &"led".parse().unwrap()).unwrap();
        let _held = folder.lock().unwrap().unwrap();
        delete_stale_files(dir.path());
        assert_eq!(names(&dir), ["group-.lock", "group-led.lock", "x.journal"]);
    }

    #[test]
    fn many_that_sweep_and_lock_at_once_leave_one_holder_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let held = std::sync::atomic::AtomicUsize::new(0);
        let order = std::sync::atomic::Ordering::SeqCst;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| delete_stale_files(dir.path())));
                scope.spawn(|| {
                    for _ in 0..500 {
                        let dirs = [dir.path().to_owned()];
                        let folder = GroupFolder::new(&dirs, &"g".parse().unwrap()).unwrap();
                        if let Ok(lock) = folder.lock().unwrap() {
                            assert_eq!(held.fetch_add(1, order), 0);
                            std::thread::yield_now();
                            held.fetch_sub(1, order);
                            drop(lock);
                        }
                    }
                });
            }
        });
        assert_eq!(names(&dir), [""; 0]);
    }
}
