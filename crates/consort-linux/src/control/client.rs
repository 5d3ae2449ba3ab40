//! A client's side of the control socket.

use super::conversation::{Peer, peer_of};
use super::message::{Answer, MAX_ANSWER_BYTES, Request, RequestError};
use crate::enact::runtime_dirs;
use nix::unistd::Uid;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Longest wait for an answer: requests are heard between turns, so a long quantum is no reason for
/// a longer one.
const PATIENCE: Duration = Duration::from_secs(20);
/// Name of the socket in its folder.
const NAME: &str = "control.sock";

/// Reason for which a daemon could not be asked.
#[derive(Debug, Error)]
pub enum CallError {
    /// No daemon listens.
    #[error(
        "no daemon runs; start one with `consort daemon` ({} tried)",
        list(tried)
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

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
    paths.join(", ")
}

/// A connection to a daemon.
#[derive(Debug)]
pub struct Call {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

/// Path at which a daemon of this user listens; none where there is no folder. `dirs` are the
/// folders for journals, best first.
pub fn socket_of(dirs: &[PathBuf]) -> Option<PathBuf> {
    dirs.first().map(|dir| dir.join(NAME))
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
/// [`CallError::NoDaemon`], [`CallError::Foreign`] for another user's daemon, or
/// [`CallError::Io`].
pub fn call(named: Option<&Path>) -> Result<Call, CallError> {
    let tried = named.map_or_else(sockets, |path| vec![path.to_owned()]);
    for path in &tried {
        if let Ok(stream) = UnixStream::connect(path) {
            return Call::with(path, stream);
        }
    }
    Err(CallError::NoDaemon { tried })
}

impl Call {
    fn with(path: &Path, stream: UnixStream) -> Result<Self, CallError> {
        let failed = |source| CallError::Io {
            path: path.to_owned(),
            source,
        };
        let Peer { uid, .. } = peer_of(&stream).map_err(failed)?;
        if uid != 0 && uid != Uid::effective().as_raw() {
            let path = path.to_owned();
            return Err(CallError::Foreign { path, uid });
        }
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            stream: BufReader::new(stream),
        })
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// [`CallError::Refused`] with the daemon's reason, [`CallError::Io`] when the
    /// connection broke, or [`CallError::Language`].
    pub fn ask(&mut self, request: &Request) -> Result<Value, CallError> {
        let line = request.line()?;
        let told = self.exchange(&line).map_err(|source| CallError::Io {
            path: self.path.clone(),
            source,
        })?;
        match Answer::parse(&told)? {
            Answer::Ok(value) => Ok(value),
            Answer::Error(why) => Err(CallError::Refused(why)),
        }
    }

    fn exchange(&mut self, line: &[u8]) -> io::Result<Vec<u8>> {
        self.stream.get_mut().write_all(line)?;
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
