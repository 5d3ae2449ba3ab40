//! The guardian as its owner sees it: its start, its health and its end.
//!
//! Owner and guardian share a socket pair and the open journal. The socket only shows that the
//! owner lives; when it ends, the guardian reads from the journal the masks to restore. Compared
//! with sending records through the socket this never blocks the owner, keeps the guardian's memory
//! flat, and a replacement guardian needs nothing but the same file.
//!
//! An owner may also stop without an end: by SIGSTOP, or in a system call that does not return. So
//! it sends a byte about once a second. If none comes for some seconds, the guardian announces
//! that it restores, restores masks and lets paused programs continue, and announces the end of
//! that. The announcement comes before the first write: an owner that finds a changed mask and
//! reads the socket only then still learns that no stranger has changed it.

use nix::errno::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use thiserror::Error;

use super::launch::RUN_MARKER;

/// Byte that the guardian sends once it no longer dies with its owner's terminal.
pub(crate) const READY: u8 = b'r';
/// Byte that the owner sends when everything is restored.
pub(crate) const DONE: u8 = b'd';
/// Byte that the owner sends while it makes turns.
pub(crate) const BEAT: u8 = b'b';
/// Byte that the guardian sends before it restores although its owner has not ended. What a dying
/// guardian prints comes through the same socket and does not contain it.
pub(crate) const RESTORING: u8 = 1;
/// Byte that the guardian sends after that.
pub(crate) const RESTORED: u8 = 2;
/// Least time between two beats.
const BEAT_EVERY: Duration = Duration::from_millis(500);
/// Longest wait for a guardian that restores already.
const RESTORE_LIMIT: Duration = Duration::from_secs(20);
/// Longest time that a guardian may take to come up; long enough for a crowded host.
const READY_LIMIT: Duration = Duration::from_secs(20);

/// Reason for which there is no guardian.
#[derive(Debug, Error)]
pub enum GuardianError {
    /// The guardian could not be started.
    #[error("cannot start the guardian from /proc/self/exe: {0}")]
    Start(#[source] io::Error),
    /// The guardian ended or hung before it reported.
    #[error("the guardian did not report that it is ready: {0}")]
    NotReady(#[source] io::Error),
}

/// State of the guardian.
#[derive(Debug, Default)]
pub enum GuardianHealth {
    /// The guardian lives.
    #[default]
    Alive,
    /// The guardian had died; another one has taken its place with the whole state.
    Replaced,
    /// The guardian had died and no other could be started; nothing new is restricted.
    Missing(GuardianError),
}

/// Arguments and files that a guardian is started with.
#[derive(Debug)]
pub(crate) struct GuardianSpec<'a> {
    /// Words by which the program is made to call [`guardian_main`](super::guardian_main()).
    pub args: &'a [OsString],
    /// The open journal.
    pub journal: &'a File,
    /// Path at which the guardian deletes the journal in the end.
    pub path: &'a Path,
    /// The mask that the guardian itself is to have, as a CPU list.
    pub own_mask: String,
}

/// A running guardian. Dropping it makes it restore everything.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    /// Non-blocking but for the first word and the last: a stopped guardian reads nothing, and a
    /// full socket must not stop the owner too.
    socket: UnixStream,
    /// Time of the last beat.
    beaten: Option<Instant>,
}

impl Guardian {
    /// Starts a guardian and waits until it is beyond the reach of signals.
    pub(crate) fn spawn(spec: &GuardianSpec<'_>) -> Result<Self, GuardianError> {
        let (mut socket, theirs) = UnixStream::pair().map_err(GuardianError::Start)?;
        let mut child = command(spec, theirs)
            .and_then(|mut command| command.spawn())
            .map_err(GuardianError::Start)?;
        let ready = wait_until_ready(&mut socket);
        if let Err(error) = ready.and_then(|()| socket.set_nonblocking(true)) {
            // Both fail only when it is dead already, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
            return Err(GuardianError::NotReady(error));
        }
        Ok(Self {
            child,
            socket,
            beaten: None,
        })
    }

    /// Shows the guardian that the owner makes turns. From the first beat on the guardian restores
    /// when no other comes for some seconds.
    pub(crate) fn send_heartbeat(&mut self) {
        let now = Instant::now();
        if self.beaten.is_none_or(|at| now - at >= BEAT_EVERY) {
            self.beaten = Some(now);
            // A full socket has beats enough in it, and the end of a guardian is noticed elsewhere.
            let _ = self.socket.write(&[BEAT]);
        }
    }

    /// Returns true if the guardian has restored since the last call because there were no beats.
    /// Waits while the guardian is still at it.
    pub(crate) fn has_restored(&mut self) -> bool {
        let mut last = None;
        let mut news = [0; 64];
        while let Ok(count @ 1..) = self.socket.read(&mut news) {
            let latest = news[..count].iter().rev();
            last = { latest }
                .find(|byte| matches!(**byte, RESTORING | RESTORED))
                .copied()
                .or(last);
        }
        if last == Some(RESTORING)
            && let Err(error) = self.wait_until_restored()
        {
            tracing::warn!(%error, "the guardian does not finish its restoration");
        }
        last.is_some()
    }

    fn wait_until_restored(&mut self) -> io::Result<()> {
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(Some(RESTORE_LIMIT))?;
        let mut word = [0];
        let mut waited = Ok(());
        while waited.is_ok() && word != [RESTORED] {
            waited = self.socket.read_exact(&mut word);
        }
        self.socket.set_nonblocking(true)?;
        waited
    }

    /// Returns true if the guardian still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the guardian without a restoration.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.socket.set_nonblocking(false)?;
        match self.socket.write_all(&[DONE]) {
            Err(e) if e.raw_os_error() != Some(Errno::EPIPE as i32) => return Err(e),
            _ => {}
        }
        self.child.wait().map(drop)
    }
}

fn command(spec: &GuardianSpec<'_>, socket: UnixStream) -> io::Result<Command> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("consort-guardian")
        .args(spec.args)
        .arg(spec.path)
        .arg(&spec.own_mask)
        .env_remove(RUN_MARKER)
        // What a dying guardian might say goes where nobody reads it, rather
        // than to the owner's terminal; not every user may open /dev/null.
        .stderr(Stdio::from(OwnedFd::from(socket.try_clone()?)))
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::from(spec.journal.try_clone()?));
    Ok(command)
}

fn wait_until_ready(socket: &mut UnixStream) -> io::Result<()> {
    socket.set_read_timeout(Some(READY_LIMIT))?;
    let mut answer = [0];
    socket.read_exact(&mut answer)?;
    if answer == [READY] {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}
