//! Accepting connections at a local socket without waiting.
//!
//! A listener whose connections cannot be accepted, because descriptors or memory are short, stays
//! readable: a loop that polls it would spin. So after such an error an [`Acceptor`] leaves it
//! unpolled for a moment. The error itself is passing, and the listener is kept.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Most connections that are accepted at a time, so that a flood of them does not hold up a turn.
const MOST_AT_A_TIME: usize = 64;
/// Pause after an error.
const PAUSE: Duration = Duration::from_millis(100);

/// A listening socket that does not block.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listener: UnixListener,
    /// End of the pause after an error; `None` if the last attempt succeeded.
    paused_until: Option<Instant>,
}

impl Acceptor {
    /// Takes over a socket that listens.
    pub(crate) fn new(listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            paused_until: None,
        })
    }

    /// The descriptor to poll; `None` during a pause.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        let is_paused = self.paused_until.is_some_and(|end| Instant::now() < end);
        (!is_paused).then(|| self.listener.as_fd())
    }

    /// Accepts the connections that wait.
    pub(crate) fn accept_waiting(&mut self, now: Instant) -> Vec<UnixStream> {
        let mut accepted = Vec::new();
        while accepted.len() < MOST_AT_A_TIME {
            match self.listener.accept() {
                Ok((stream, _)) => accepted.push(stream),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.paused_until = None;
                    break;
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be accepted");
                    self.paused_until = Some(now + PAUSE);
                    break;
                }
            }
        }
        accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    #[test]
    fn flood_of_connections_is_accepted_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let mut acceptor = Acceptor::new(UnixListener::bind(&path).unwrap()).unwrap();
        let flood = MOST_AT_A_TIME + 5;
        let clients: Vec<UnixStream> = (0..flood)
            .map(|_| UnixStream::connect(&path).unwrap())
            .collect();
        let first = acceptor.accept_waiting(Instant::now());
        assert_eq!(first.len(), MOST_AT_A_TIME);
        assert_eq!(acceptor.accept_waiting(Instant::now()).len(), 5);
        assert!(acceptor.fd().is_some());
        drop(clients);
    }

    #[test]
    fn failed_accept_pauses_polling_and_no_longer() {
        // A socket that does not listen answers EINVAL, as one without descriptors does EMFILE.
        let (silent, _peer) = UnixStream::pair().unwrap();
        let listener = UnixListener::from(OwnedFd::from(silent));
        let mut acceptor = Acceptor::new(listener).unwrap();
        assert!(acceptor.accept_waiting(Instant::now()).is_empty());
        assert!(acceptor.fd().is_none());
        let long_ago = Instant::now().checked_sub(2 * PAUSE).unwrap();
        assert!(acceptor.accept_waiting(long_ago).is_empty());
        assert!(acceptor.fd().is_some());
    }
}
