//! A client's side of the control socket.

use super::client_connection::{Peer, SILENCE, peer_credentials};
use super::message::{DaemonAnswer, DaemonRequest, MAX_ANSWER_BYTES, RequestError};
use super::place::NAME;
use crate::enact::runtime_dirs;
use nix::unistd::Uid;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Longest wait for an answer: requests are heard between turns, so a long quantum is no reason for
/// a longer one.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reason for which a daemon could not be asked.
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
    #[error("{} is served by user {uid}, whom it does not belong to", path.display())]
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
    Language(#[from] RequestError),
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
    stream: BufReader<UnixStream>,
    /// Time of the last answer.
    answered: Instant,
}

/// Returns true if a daemon of this user, or of root, listens in one of these folders.
pub fn has_daemon(dirs: &[PathBuf]) -> bool {
    let mut places = dirs.iter().map(|dir| dir.join(NAME));
    places.any(|place| place.exists() && connect_daemon(Some(&place)).is_ok())
}

/// Paths at which a daemon is looked for: this user's own, then the host's.
pub fn sockets() -> Vec<PathBuf> {
    let own = runtime_dirs().into_iter().map(|dir| dir.join(NAME));
    let mut all: Vec<PathBuf> = own.collect();
    let of_host = Path::new("/run/consort").join(NAME);
    if !all.contains(&of_host) {
        all.push(of_host);
    }
    all
}

/// Calls the daemon at `named`, or the first that is found.
///
/// # Errors
/// [`DaemonConnectionError::NoDaemon`], [`DaemonConnectionError::Foreign`] for another user's daemon, or
/// [`DaemonConnectionError::Io`].
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
        let failed = |source| DaemonConnectionError::Io {
            path: path.to_owned(),
            source,
        };
        let Peer { uid, .. } = peer_credentials(&stream).map_err(failed)?;
        if uid != 0 && uid != Uid::effective().as_raw() {
            let path = path.to_owned();
            return Err(DaemonConnectionError::Foreign { path, uid });
        }
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            stream: BufReader::new(stream),
            answered: Instant::now(),
        })
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// [`DaemonConnectionError::Refused`] with the daemon's reason, [`DaemonConnectionError::Io`] when the
    /// connection broke, or [`DaemonConnectionError::Language`].
    pub fn send_request(
        &mut self,
        request: &DaemonRequest,
    ) -> Result<Value, DaemonConnectionError> {
        let line = request.to_line()?;
        let path = self.path.clone();
        let failed = |source| DaemonConnectionError::Io { path, source };
        // The daemon ends conversations that are silent for long, such as that of a paused view.
        if self.answered.elapsed() > SILENCE / 2 {
            match UnixStream::connect(&self.path) {
                Ok(stream) => *self = Self::from_stream(&self.path, stream)?,
                Err(error) => return Err(failed(error)),
            }
        }
        let told = self.exchange(&line).map_err(failed)?;
        self.answered = Instant::now();
        match DaemonAnswer::parse(&told)? {
            DaemonAnswer::Ok(value) => Ok(value),
            DaemonAnswer::Error(why) => Err(DaemonConnectionError::Refused(why)),
        }
    }

    fn exchange(&mut self, line: &[u8]) -> io::Result<Vec<u8>> {
        let sent = self.stream.get_mut().write_all(line);
        let closed = |e: &io::Error| {
            let kind = e.kind();
            kind == io::ErrorKind::BrokenPipe || kind == io::ErrorKind::ConnectionReset
        };
        // A daemon that refuses may close before the request comes; its reason can still be read.
        match &sent {
            Err(error) if !closed(error) => return sent.map(|()| Vec::new()),
            _ => {}
        }
        let mut told = Vec::new();
        let most = MAX_ANSWER_BYTES as u64 + 1;
        self.stream
            .by_ref()
            .take(most)
            .read_until(b'\n', &mut told)?;
        match told.pop() {
            Some(b'\n') => Ok(told),
            _ => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the connection ended",
            )),
        }
    }
}
