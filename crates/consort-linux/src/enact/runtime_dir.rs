//! The folder for journals: short-lived, private, and safe from others.

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::{Uid, UnlinkatFlags, mkdtemp, unlinkat};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// End of the name of a file that is not finished, such as a journal without its header. One whose
/// process is gone is deleted by the next run.
pub(crate) const NEW_SUFFIX: &str = ".new";
/// Permission bits that let others write.
const OTHERS_WRITE: u32 = 0o022;
/// Size of a file that is written on trial, bytes: a page, the least that a file system in memory
/// gives.
const PROBE_BYTES: usize = 4096;

/// Reason for which a folder cannot hold journals.
#[derive(Debug, Error)]
pub enum RuntimeDirError {
    /// The folder is absent and cannot be made, is a link or not a folder, or nothing can be written
    /// in it.
    #[error("cannot use {path} as a private folder: {source}")]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The folder belongs to another user, or others may write in it.
    #[error("{path} is not private: it must belong to uid {uid} and be writable by no other")]
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// The uid of the caller.
        uid: u32,
    },
    /// No folder was given.
    #[error("no runtime folder was given")]
    NoneGiven,
}

/// A folder that was checked, held open so that it cannot be exchanged.
#[derive(Debug)]
pub(crate) struct RuntimeDir {
    pub path: PathBuf,
    pub handle: File,
}

impl RuntimeDir {
    /// Opens the first usable folder, making it if need be.
    pub(crate) fn open_first_usable(dirs: &[PathBuf]) -> Result<Self, RuntimeDirError> {
        let mut result = Err(RuntimeDirError::NoneGiven);
        for dir in dirs {
            result = Self::create(dir).and_then(Self::check_writable);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    /// Opens the same folder once more.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            path: self.path.clone(),
            handle: self.handle.try_clone()?,
        })
    }

    fn create(path: &Path) -> Result<Self, RuntimeDirError> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
                Err(unusable_error(path, source))
            }
            _ => Self::open(path),
        }
    }

    /// Writes and deletes a file in the folder. Owner and mode do not show that a file system is
    /// read-only, full or over its quota; a file without content does not show the last two.
    fn check_writable(self) -> Result<Self, RuntimeDirError> {
        let probe = self
            .open_probe_file()
            .map_err(|e| unusable_error(&self.path, e.into()));
        // Beyond the limit on file sizes a write would end the process by SIGXFSZ.
        let most = getrlimit(Resource::RLIMIT_FSIZE).map_or(u64::MAX, |(soft, _)| soft);
        let bytes = PROBE_BYTES.min(usize::try_from(most).unwrap_or(usize::MAX));
        let written = match bytes {
            0 => Err(Errno::EFBIG.into()),
            bytes => probe?.write_all(&[0; PROBE_BYTES][..bytes]),
        };
        written.map_err(|source| unusable_error(&self.path, source))?;
        Ok(self)
    }

    /// An open file of the folder that has no name, so that it disappears with its process.
    fn open_probe_file(&self) -> Result<File, Errno> {
        let (flags, mode) = (OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::S_IRUSR);
        match openat(&self.handle, ".", flags | OFlag::O_TMPFILE, mode) {
            // The file system (EOPNOTSUPP) or the kernel (EISDIR) has no files without names.
            Err(Errno::EOPNOTSUPP | Errno::EISDIR) => {}
            opened => return opened.map(File::from),
        }
        // One that a killed process leaves is deleted by the next run, as an unfinished journal.
        let name = format!("probe-{}{NEW_SUFFIX}", std::process::id());
        let flags = flags | OFlag::O_CREAT | OFlag::O_NOFOLLOW;
        let file = openat(&self.handle, name.as_str(), flags, mode)?;
        // Another thread of this process may have deleted it.
        let _ = unlinkat(&self.handle, name.as_str(), UnlinkatFlags::NoRemoveDir);
        Ok(file.into())
    }

    /// Opens a folder that exists, without following a link in its place.
    pub(crate) fn open(path: &Path) -> Result<Self, RuntimeDirError> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // Checked by the descriptor, and used by it later: the name may lead elsewhere by then.
        let fd = open(path, flags, Mode::empty()).map_err(|e| unusable_error(path, e.into()))?;
        let status = fstat(&fd).map_err(|e| unusable_error(path, e.into()))?;
        let uid = Uid::effective().as_raw();
        if status.st_uid != uid || status.st_mode & OTHERS_WRITE != 0 {
            let path = path.to_owned();
            return Err(RuntimeDirError::NotPrivate { path, uid });
        }
        Ok(Self {
            path: path.to_owned(),
            handle: fd.into(),
        })
    }
}

fn unusable_error(path: &Path, source: io::Error) -> RuntimeDirError {
    RuntimeDirError::Unusable {
        path: path.to_owned(),
        source,
    }
}

// If no usual folder can be used, a spare one is made. Its name is chosen at random (`mkdtemp(3)`), so
// that no other user can take it first, and begins with the user's number, so that later runs find
// it: they recover journals in it, and runs of one group meet in it. An existing spare folder is used
// again, even if a usual folder has become usable meanwhile. It is never deleted.

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
    // Looked up again under the lock, because another run may have made one meanwhile.
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
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_is_made_private() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("consort");
        RuntimeDir::open_first_usable(std::slice::from_ref(&path)).unwrap();
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_link_is_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let link = parent.path().join("consort");
        symlink(parent.path(), &link).unwrap();
        let error = RuntimeDir::open_first_usable(&[link]).unwrap_err();
        assert!(matches!(error, RuntimeDirError::Unusable { .. }), "{error}");
    }

    #[test]
    fn folder_writable_by_others_is_skipped() {
        let parent = tempfile::tempdir().unwrap();
        let open = parent.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
        let error = RuntimeDir::open_first_usable(std::slice::from_ref(&open)).unwrap_err();
        assert!(
            matches!(error, RuntimeDirError::NotPrivate { .. }),
            "{error}"
        );
        let good = parent.path().join("good");
        assert_eq!(
            RuntimeDir::open_first_usable(&[open, good.clone()])
                .unwrap()
                .path,
            good
        );
    }
}

#[cfg(test)]
mod candidate_dirs_tests {
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
    fn usable_usual_folder_needs_no_spare() {
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
