//! The control socket: the requests that a daemon takes, and the users that may make them.
//!
//! One line of JSON each way, version first; a client may send any number of requests over one
//! connection:
//!
//! ```text
//! {"version":1,"request":"status"}
//! {"version":1,"answer":{"ok":{"policy":"workover",...}}}
//! {"version":1,"request":{"attach":{"pids":[4711],"cgroups":[],"policy":"gang"}}}
//! {"version":1,"answer":{"ok":{"attached":["xz (4711)"]}}}
//! {"version":1,"request":{"attach":{"pids":[1],"cgroups":[],"policy":null}}}
//! {"version":1,"answer":{"error":"process 1 belongs to user 0; user 1000 may name only processes of its own"}}
//! ```
//!
//! | request | does | who may |
//! |---|---|---|
//! | `status` | reports what is managed, how, and since when | all: each sees its own threads, root all |
//! | `{"explain":{"tid":N}}` | reports why a thread is where it is | its owner, root |
//! | `{"attach":{"pids":[],"cgroups":[],"policy":null}}` | manages them | owners their processes; root and the daemon's user also control groups |
//! | `{"detach":{"pids":[],"cgroups":[]}}` | restores their masks and stops managing them | the same |
//! | `{"policy":{"policy":"NAME"}}` | uses another policy from now on | root, the daemon's user |
//! | `"reload"` | reads the configuration again | root, the daemon's user |
//!
//! The kernel reports the user of a client (`SO_PEERCRED`, `unix(7)`). Requests have at most 4,096
//! bytes, answers at most 16 MiB. A user has at most 16 connections and 200 requests per second, all
//! together 64 connections, 16 of them for root and the daemon's user alone; requests beyond that
//! rate wait. A process that may have few descriptors has fewer connections. A connection without a
//! complete request for 30 seconds is closed, and one whose peer does not take its answer within
//! ten. A peer that is refused gets the reason as an answer.
//!
//! Usage: a daemon opens a [`ControlServer`], polls its descriptors and calls
//! [`ControlServer::serve_clients`]; clients use [`connect_daemon`].

mod client;
mod server;

pub use crate::protocol::{
    AttachTargets, DaemonAnswer, DaemonRequest, LineError, MAX_ANSWER_BYTES, Peer,
};
pub use client::{DaemonConnection, DaemonConnectionError, connect_daemon, has_daemon, sockets};
pub use server::ControlServer;

use crate::enact::{RuntimeDir, RuntimeDirError};
use crate::protocol::Acceptor;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fchmod, fstat};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Name of the socket in its folder.
pub(super) const SOCKET_NAME: &str = "control.sock";
/// Permission of others to pass through a folder, so that they reach a file in it by its name.
const OTHERS_PASS: u32 = 0o011;

/// Reason for which there is no control socket.
#[derive(Debug, Error)]
pub enum ControlServerError {
    /// Another daemon listens there already.
    #[error("a daemon runs already, process {pid}, at {}; stop it first", path.display())]
    Taken {
        /// Process id of that daemon; 0 if it is not known.
        pid: u32,
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("cannot listen at {}: {source}", path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

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
    /// If no folder is private to this user, or can be made.
    pub fn in_runtime_dir(dirs: &[PathBuf], for_all: bool) -> Result<Self, RuntimeDirError> {
        // Held open from here on, so that a folder that takes its place later is not used.
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
            path: folder.path.join(SOCKET_NAME),
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
    fn own_path(&self) -> PathBuf {
        match &self.folder {
            Some(folder) => {
                let fd = folder.handle.as_raw_fd();
                let folder = Path::new("/proc/self/fd").join(fd.to_string());
                folder.join(SOCKET_NAME)
            }
            None => self.path.clone(),
        }
    }

    /// Makes the socket and listens at it; replaces a socket that a killed daemon has left. With
    /// `for_all`, every user of the host may connect.
    pub(super) fn listen(&self, for_all: bool) -> Result<Acceptor, ControlServerError> {
        let own = self.own_path();
        let path = self.path.clone();
        let listening = match UnixStream::connect(&own) {
            Ok(stream) => {
                let pid = Peer::from_stream(&stream).map_or(0, |peer| peer.pid);
                return Err(ControlServerError::Taken { pid, path });
            }
            Err(error) => match (std::fs::symlink_metadata(&own), error.kind()) {
                (Err(missing), _) if missing.kind() == io::ErrorKind::NotFound => {
                    bind_socket(&own, for_all)
                }
                // A link counts as a link, wherever it leads.
                (Ok(there), _) if !there.file_type().is_socket() => Err(not_a_socket()),
                // No process listens at it any more.
                (Ok(_), io::ErrorKind::ConnectionRefused) => {
                    remove_socket(&own).and_then(|()| bind_socket(&own, for_all))
                }
                _ => Err(error),
            },
        };
        listening.map_err(|source| ControlServerError::Listen { path, source })
    }

    pub(super) fn remove(&self) {
        // It fails if it was removed or replaced already; then nothing is left to do.
        let _ = remove_socket(&self.own_path());
    }
}

/// Removes a socket, and no other file: a path that was mistyped must not cost a file.
fn remove_socket(path: &Path) -> io::Result<()> {
    let there = std::fs::symlink_metadata(path)?;
    if !there.file_type().is_socket() {
        return Err(not_a_socket());
    }
    std::fs::remove_file(path)
}

fn not_a_socket() -> io::Error {
    io::Error::other("a file that is not a socket is there; name another path")
}

fn bind_socket(path: &Path, for_all: bool) -> io::Result<Acceptor> {
    let listener = UnixListener::bind(path)?;
    let mode = if for_all { 0o666 } else { 0o600 };
    // By a descriptor that follows no link, so that the mode of no other file is changed.
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let socket = File::from(open(path, flags, Mode::empty())?);
    if !socket.metadata()?.file_type().is_socket() {
        return Err(io::Error::other("another file took the socket's place"));
    }
    // fchmod(2) does not take such a descriptor; its name does not change under it.
    let name = format!("/proc/self/fd/{}", socket.as_raw_fd());
    std::fs::set_permissions(name, Permissions::from_mode(mode))?;
    Acceptor::new(listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn planted_link_is_passed_over() {
        let parent = tempfile::tempdir().unwrap();
        let victim = parent.path().join("victim");
        std::fs::create_dir(&victim).unwrap();
        std::fs::set_permissions(&victim, Permissions::from_mode(0o700)).unwrap();
        let (link, next) = (parent.path().join("link"), parent.path().join("next"));
        symlink(&victim, &link).unwrap();
        let place = SocketPlace::in_runtime_dir(&[link, next.clone()], true).unwrap();
        assert_eq!(place.path(), next.join(SOCKET_NAME));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&victim), mode(&next)), (0o700, 0o711));
    }

    #[test]
    fn folder_exchanged_later_is_not_used() {
        let parent = tempfile::tempdir().unwrap();
        let (usual, moved) = (parent.path().join("usual"), parent.path().join("moved"));
        let place = SocketPlace::in_runtime_dir(std::slice::from_ref(&usual), false).unwrap();
        std::fs::rename(&usual, &moved).unwrap();
        std::fs::create_dir(&usual).unwrap();
        std::fs::write(place.own_path(), "").unwrap();
        assert!(moved.join(SOCKET_NAME).exists() && !usual.join(SOCKET_NAME).exists());
    }

    #[test]
    fn second_daemon_is_refused_and_stale_socket_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let place = SocketPlace::from_path(&path);
        let acceptor = place.listen(false).unwrap();
        let error = place.listen(false).unwrap_err().to_string();
        let expected = format!("a daemon runs already, process {}", std::process::id());
        assert!(error.starts_with(&expected), "{error}");
        drop(acceptor);
        assert!(path.exists(), "nobody removed the socket");
        place.listen(false).unwrap();
        place.remove();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn only_sockets_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let listen = |path: &Path| SocketPlace::from_path(path).listen(false);
        let file = folder.path().join("important.txt");
        std::fs::write(&file, "important").unwrap();
        let error = listen(&file).unwrap_err().to_string();
        assert!(error.contains("is not a socket"), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "important");
        // A link to a socket is none: what it names belongs to someone else.
        let (socket, link) = (folder.path().join("socket"), folder.path().join("link"));
        drop(UnixListener::bind(&socket).unwrap());
        symlink(&socket, &link).unwrap();
        assert!(listen(&link).is_err());
        assert!(link.is_symlink() && socket.exists());
        std::fs::remove_file(&socket).unwrap();
        for path in [&link, &folder.path().to_owned()] {
            let error = listen(path).unwrap_err().to_string();
            assert!(error.contains("is not a socket"), "{error}");
        }
        assert!(link.is_symlink() && !socket.exists());
    }
}
