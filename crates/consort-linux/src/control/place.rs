//! The place of a control socket.

use crate::enact::{RuntimeDir, RuntimeDirError};
use nix::sys::stat::{Mode, fchmod, fstat};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Name of the socket in its folder.
pub(super) const NAME: &str = "control.sock";
/// Permission of others to pass through a folder, so that they reach a file in it by its name.
const OTHERS_PASS: u32 = 0o011;

/// The place of a control socket.
///
/// The usual one is in the folder for journals, which is checked and held open: whatever other users
/// put into its place later, the socket is made in the folder that was checked.
#[derive(Debug)]
pub struct SocketPlace {
    path: PathBuf,
    folder: Option<RuntimeDir>,
}

impl SocketPlace {
    /// The usual place: the first folder that can be used, made if need be. With `for_all`, other
    /// users may pass through it; they can neither list nor read what else is there.
    ///
    /// # Errors
    /// When no folder is private to this user, or can be made.
    pub fn in_runtime_dir(dirs: &[PathBuf], for_all: bool) -> Result<Self, RuntimeDirError> {
        let folder = RuntimeDir::open_first_usable(dirs)?;
        if for_all {
            let opened = fstat(&folder.handle).and_then(|status| {
                let mode = Mode::from_bits_truncate(status.st_mode | OTHERS_PASS);
                fchmod(&folder.handle, mode)
            });
            opened.map_err(|errno| RuntimeDirError::Unusable {
                path: folder.path.clone(),
                source: errno.into(),
            })?;
        }
        Ok(Self {
            path: folder.path.join(NAME),
            folder: Some(folder),
        })
    }

    /// The place that a user has named.
    pub fn from_path(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            folder: None,
        }
    }

    /// Path of the socket, for clients and messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path by which this process reaches the socket, and no file that has taken its place.
    pub(super) fn own_path(&self) -> PathBuf {
        match &self.folder {
            Some(folder) => {
                let fd = folder.handle.as_raw_fd();
                Path::new("/proc/self/fd").join(fd.to_string()).join(NAME)
            }
            None => self.path.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn planted_link_is_not_followed_and_the_next_folder_is_taken() {
        let parent = tempfile::tempdir().unwrap();
        let victim = parent.path().join("victim");
        std::fs::create_dir(&victim).unwrap();
        std::fs::set_permissions(&victim, Permissions::from_mode(0o700)).unwrap();
        let (link, next) = (parent.path().join("link"), parent.path().join("next"));
        symlink(&victim, &link).unwrap();
        let place = SocketPlace::in_runtime_dir(&[link, next.clone()], true).unwrap();
        assert_eq!(place.path(), next.join(NAME));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&victim), mode(&next)), (0o700, 0o711));
    }

    #[test]
    fn folder_that_is_exchanged_later_is_not_used() {
        let parent = tempfile::tempdir().unwrap();
        let (usual, moved) = (parent.path().join("usual"), parent.path().join("moved"));
        let place = SocketPlace::in_runtime_dir(std::slice::from_ref(&usual), false).unwrap();
        std::fs::rename(&usual, &moved).unwrap();
        std::fs::create_dir(&usual).unwrap();
        std::fs::write(place.own_path(), "").unwrap();
        assert!(moved.join(NAME).exists() && !usual.join(NAME).exists());
    }
}
