//! A client's side of the control socket.

use super::SOCKET_NAME;
use super::server::MAX_SILENCE;
use crate::enact::runtime_dirs;
use crate::protocol::{
    DaemonAnswer, DaemonRequest, Language, LineBuffer, LineConnection, LineError, MAX_ANSWER_BYTES,
    Peer, ReadError,
};
use nix::unistd::Uid;
use serde_json::Value;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Longest wait for an answer. Requests are served during a quantum, so a long quantum is no reason
/// for a longer wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reason for which a daemon gave no answer.
#[derive(Debug, Error)]
pub enum DaemonConnectionError {
    /// No daemon listens.
    #[error(
        "no daemon runs; start one with `consort daemon` ({} tried)",
        join_paths(tried)
    )]
    NoDaemon {
        /// Sockets that were tried.
        tried: Vec<PathBuf>,
    },
    /// The daemon belongs to neither root nor the caller.
    #[error(
        "the daemon at {} runs as user {uid}; expected root or your own user",
        path.display()
    )]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// Id of the user that serves it.
        uid: u32,
    },
    /// The connection broke.
    #[error("the daemon at {} does not answer: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The request or the answer is not a line of the control language.
    #[error(transparent)]
    Language(#[from] LineError),
    /// The daemon refused, for this reason.
    #[error("{0}")]
    Refused(String),
}

fn join_paths(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    paths.join(", ")
}

/// A connection to a daemon.
#[derive(Debug)]
pub struct DaemonConnection {
    path: PathBuf,
    connection: LineConnection,
    /// Time of the last answer.
    answered: Instant,
}

/// Returns true if a daemon of this user, or of root, listens in one of these folders.
pub fn has_daemon(dirs: &[PathBuf]) -> bool {
    let mut places = dirs.iter().map(|dir| dir.join(SOCKET_NAME));
    places.any(|place| place.exists() && connect_daemon(Some(&place)).is_ok())
}

/// Paths at which a daemon is looked for: this user's own, then the host's.
pub fn sockets() -> Vec<PathBuf> {
    let own = runtime_dirs().into_iter().map(|dir| dir.join(SOCKET_NAME));
    let mut all: Vec<PathBuf> = own.collect();
    let host = Path::new("/run/consort").join(SOCKET_NAME);
    if !all.contains(&host) {
        all.push(host);
    }
    all
}

/// Connects to the daemon at `named`, or to the first that is found.
///
/// # Errors
/// [`DaemonConnectionError::NoDaemon`], [`DaemonConnectionError::Foreign`] for another user's
/// daemon, or [`DaemonConnectionError::Io`].
pub fn connect_daemon(named: Option<&Path>) -> Result<DaemonConnection, DaemonConnectionError> {
    let tried = named.map_or_else(sockets, |path| vec![path.to_owned()]);
    for path in &tried {
        if let Ok(stream) = UnixStream::connect(path) {
            return DaemonConnection::from_stream(path, stream);
        }
    }
    Err(DaemonConnectionError::NoDaemon { tried })
}

impl DaemonConnection {
    fn from_stream(path: &Path, stream: UnixStream) -> Result<Self, DaemonConnectionError> {
        let path = path.to_owned();
        let opened = Peer::from_stream(&stream).and_then(|peer| {
            let buffer = LineBuffer::new(Language::Control, MAX_ANSWER_BYTES + 1);
            Ok((
                peer,
                LineConnection::from_connected(stream, buffer, PATIENCE)?,
            ))
        });
        match opened {
            Err(source) => Err(DaemonConnectionError::Io { path, source }),
            // Another user's daemon could learn, or make up, what the caller runs.
            Ok((Peer { uid, .. }, _)) if uid != 0 && uid != Uid::effective().as_raw() => {
                Err(DaemonConnectionError::Foreign { path, uid })
            }
            Ok((_, connection)) => Ok(Self {
                path,
                connection,
                answered: Instant::now(),
            }),
        }
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// [`DaemonConnectionError::Refused`] with the daemon's reason, [`DaemonConnectionError::Io`] if
    /// the connection broke, or [`DaemonConnectionError::Language`].
    pub fn send_request(
        &mut self,
        request: &DaemonRequest,
    ) -> Result<Value, DaemonConnectionError> {
        // Written out before the connection is touched: a request that is too long is the caller's
        // fault.
        let line = request.to_line()?;
        let path = self.path.clone();
        let failed = |source| DaemonConnectionError::Io { path, source };
        // The daemon closes connections that are silent for long, such as that of a paused view.
        if self.answered.elapsed() > MAX_SILENCE / 2 {
            match UnixStream::connect(&self.path) {
                Ok(stream) => *self = Self::from_stream(&self.path, stream)?,
                Err(error) => return Err(failed(error)),
            }
        }
        let answer = self.exchange(&line).map_err(failed)?;
        self.answered = Instant::now();
        match DaemonAnswer::parse(&answer)? {
            DaemonAnswer::Ok(value) => Ok(value),
            DaemonAnswer::Error(why) => Err(DaemonConnectionError::Refused(why)),
        }
    }

    fn exchange(&mut self, line: &[u8]) -> io::Result<Vec<u8>> {
        match self.connection.write_line(line) {
            // A daemon that refuses may close before the request comes; its reason can still be
            // read.
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ) =>
            {
                return Err(error);
            }
            _ => {}
        }
        loop {
            if let Some(line) = self.connection.take_line() {
                return Ok(line);
            }
            match self.connection.read_piece() {
                Ok(_) => {}
                Err(ReadError::Io(error)) => return Err(error),
                Err(ReadError::Closed | ReadError::Line(_)) => {
                    let kind = io::ErrorKind::UnexpectedEof;
                    return Err(io::Error::new(kind, "the connection ended"));
                }
            }
        }
    }
}
