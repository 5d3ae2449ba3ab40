//! Folders in which journals may be kept, with a spare one where no usual one can be used.
//!
//! The name of a spare folder is chosen at random (`mkdtemp(3)`), so that nobody can take it first,
//! and begins with the user's number, so that later runs find it: journals in it are recovered, and
//! runs of one group meet in it. A folder that is there is used again, whether or not a usual one
//! has become usable meanwhile; it is never deleted.

use super::runtime_dir::RuntimeDir;
use nix::unistd::{Uid, mkdtemp};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of attempts to lock the folder above, 10 ms apart. A process that holds it for longer is
/// hostile; then two runs that start at once may make a folder each, and be two groups.
const ATTEMPTS: u32 = 50;

/// Folders for journals, best first: `$XDG_RUNTIME_DIR/consort`; `/run/consort` for root or
/// `/tmp/consort-<uid>` for others; and the folder of the user's logins, `/run/user/<uid>/consort`,
/// where a run with another environment may be. Root's `$XDG_RUNTIME_DIR` comes last where it is
/// that folder. If none of these can be used, since another user has taken the name or nothing can
/// be written there, a new private folder `/tmp/consort-<uid>.XXXXXX` is made. Later runs find it
/// by its name and owner.
pub fn runtime_dirs() -> Vec<PathBuf> {
    let xdg = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let uid = Uid::effective();
    add_spare_dirs(candidates(xdg, uid), Path::new("/tmp"), uid)
}

fn candidates(xdg: Option<PathBuf>, uid: Uid) -> Vec<PathBuf> {
    let of_logins = PathBuf::from(format!("/run/user/{uid}"));
    let fallback = match uid.is_root() {
        true => PathBuf::from("/run/consort"),
        false => PathBuf::from(format!("/tmp/consort-{uid}")),
    };
    // The folder of logins is deleted when the last one ends, with the journals in it. Root's
    // services outlive that, and a login of root has to meet them.
    let is_passing = |dir: &PathBuf| uid.is_root() && *dir == of_logins;
    let named = xdg.filter(|dir| dir.is_absolute() && !is_passing(dir));
    let named = named.map(|dir| dir.join("consort"));
    let last = Some(of_logins.join("consort")).filter(|last| Some(last) != named.as_ref());
    named.into_iter().chain([fallback]).chain(last).collect()
}

/// Returns the folders with the spare ones of this user in `parent`; makes one if none can be used.
fn add_spare_dirs(mut dirs: Vec<PathBuf>, parent: &Path, uid: Uid) -> Vec<PathBuf> {
    let usual = dirs.len();
    dirs.extend(find_spare_dirs(parent, uid));
    if dirs.len() > usual || RuntimeDir::open_first_usable(&dirs).is_ok() {
        return dirs;
    }
    let lock = lock_dir(parent);
    dirs.extend(find_spare_dirs(parent, uid));
    if dirs.len() == usual {
        let name = parent.join(format!("{}XXXXXX", prefix(uid)));
        // A caller that needs a folder reports that there is none.
        dirs.extend(mkdtemp(&name));
    }
    drop(lock);
    dirs
}

fn prefix(uid: Uid) -> String {
    format!("consort-{uid}.")
}

/// Private folders of this user that earlier runs have made.
fn find_spare_dirs(parent: &Path, uid: Uid) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let is_named = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&prefix(uid)))
    };
    let named = entries.map(|entry| entry.path()).filter(is_named);
    let mut spares: Vec<PathBuf> = named
        .filter(|path| RuntimeDir::open(path).is_ok())
        .collect();
    spares.sort();
    spares
}

/// Opens and locks the folder above, so that one run makes a folder and the others find it.
fn lock_dir(parent: &Path) -> Option<File> {
    let file = File::open(parent).ok()?;
    for _ in 0..ATTEMPTS {
        if file.try_lock().is_ok() {
            return Some(file);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A parent, and a usual folder in it that others may write.
    fn taken() -> (tempfile::TempDir, Vec<PathBuf>) {
        let parent = tempfile::tempdir().unwrap();
        let usual = parent.path().join("consort-7");
        std::fs::create_dir(&usual).unwrap();
        std::fs::set_permissions(&usual, PermissionsExt::from_mode(0o777)).unwrap();
        (parent, vec![usual])
    }

    fn dirs(parent: &tempfile::TempDir, usual: &[PathBuf]) -> Vec<PathBuf> {
        add_spare_dirs(usual.to_vec(), parent.path(), Uid::from_raw(7))
    }

    #[test]
    fn users_and_root_have_different_fallbacks() {
        let dirs = candidates(Some("/run/user/7".into()), Uid::from_raw(7));
        assert_eq!(dirs[0], Path::new("/run/user/7/consort"));
        assert_eq!(dirs[1], Path::new("/tmp/consort-7"));
        assert_eq!(dirs.len(), 2);
        let other = candidates(Some("/run/of-a-service".into()), Uid::from_raw(7));
        assert_eq!(other[0], Path::new("/run/of-a-service/consort"));
        assert_eq!(other[1..], [dirs[1].clone(), dirs[0].clone()]);
    }

    #[test]
    fn services_and_logins_of_root_share_a_folder() {
        let (root, of_logins) = (Uid::from_raw(0), Path::new("/run/user/0"));
        let expected = [PathBuf::from("/run/consort"), of_logins.join("consort")];
        for xdg in [None, Some(of_logins.to_owned()), Some("relative".into())] {
            assert_eq!(candidates(xdg, root), expected);
        }
        let named = candidates(Some("/run/of-a-service".into()), root);
        assert_eq!(named[0], Path::new("/run/of-a-service/consort"));
        assert_eq!(named[1..], expected);
    }

    #[test]
    fn a_spare_folder_is_private_and_found_again() {
        let (parent, usual) = taken();
        let first = dirs(&parent, &usual);
        assert_eq!(first.len(), 2, "{first:?}");
        let mode = first[1].metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(dirs(&parent, &usual), first);
        assert_eq!(
            RuntimeDir::open_first_usable(&first).unwrap().path,
            first[1]
        );
    }

    #[test]
    fn none_is_made_where_a_usual_one_can_be_used() {
        let parent = tempfile::tempdir().unwrap();
        let usual = vec![parent.path().join("consort-7")];
        assert_eq!(dirs(&parent, &usual), usual);
        assert!(usual[0].exists());
    }

    #[test]
    fn one_that_others_may_write_is_not_used() {
        let (parent, usual) = taken();
        let foreign = parent.path().join("consort-7.aaaaaa");
        std::fs::create_dir(&foreign).unwrap();
        std::fs::set_permissions(&foreign, PermissionsExt::from_mode(0o777)).unwrap();
        let dirs = dirs(&parent, &usual);
        assert!(dirs.len() == 2 && dirs[1] != foreign, "{dirs:?}");
    }

    #[test]
    fn runs_that_start_at_once_meet_in_one() {
        let (parent, usual) = taken();
        let found: Vec<Vec<PathBuf>> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| dirs(&parent, &usual)))
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert!(found.iter().all(|dirs| *dirs == found[0]), "{found:?}");
    }
}
