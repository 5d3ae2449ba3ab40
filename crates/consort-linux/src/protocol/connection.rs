//! Connections at a local socket: accepting them without waiting, and exchanging lines over them.

use crate::proc::ThreadUsers;
use consort_core::ThreadId;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Uid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Most connections that are accepted at a time, so that a flood of them does not hold up a turn.
const MAX_ACCEPTED: usize = 64;
/// Pause after an error of accepting.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listening socket that does not block.
///
/// A listener whose connections cannot be accepted, because descriptors or memory are short, stays
/// readable: a loop that polls it would spin. So after such an error the listener is not polled for
/// a moment. It is kept, because the error passes.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listener: UnixListener,
    /// End of the pause after an error; `None` if the last attempt succeeded.
    paused_until: Option<Instant>,
}

impl Acceptor {
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

    /// Accepts the connections that wait, at most 64.
    pub(crate) fn accept_waiting(&mut self, now: Instant) -> Vec<UnixStream> {
        let mut accepted = Vec::new();
        while accepted.len() < MAX_ACCEPTED {
            match self.listener.accept() {
                Ok((stream, _)) => accepted.push(stream),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.paused_until = None;
                    break;
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection could not be accepted");
                    self.paused_until = Some(now + ACCEPT_PAUSE);
                    break;
                }
            }
        }
        accepted
    }
}

/// The process at the other end of a connection, as the kernel reports it (`SO_PEERCRED`,
/// `unix(7)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Id of the effective user.
    pub uid: u32,
    /// Process id; 0 for a process in another PID namespace.
    pub pid: u32,
}

impl Peer {
    pub(crate) fn from_stream(stream: &UnixStream) -> io::Result<Self> {
        let credentials = getsockopt(stream, PeerCredentials)?;
        Ok(Self {
            uid: credentials.uid(),
            pid: credentials.pid().cast_unsigned(),
        })
    }

    /// Returns true for clients that may make every request: root, and the user that runs the
    /// daemon.
    pub fn is_master(self) -> bool {
        self.uid == 0 || self.uid == Uid::effective().as_raw()
    }

    /// Returns true if the client may see a thread: it acts for the client's user alone.
    pub fn may_see(self, id: ThreadId) -> bool {
        let users = || ThreadUsers::from_thread(Path::new("/"), id);
        self.is_master() || users().is_ok_and(|users| users.other_than(self.uid).is_none())
    }

    /// Returns true if the client may see the first thread of a process.
    pub fn may_see_process(self, pid: u32) -> bool {
        let users = || ThreadUsers::from_process(Path::new("/"), pid);
        self.is_master() || users().is_ok_and(|users| users.other_than(self.uid).is_none())
    }
}

/// Reason for which nothing more was read from a connection.
#[derive(Debug, Error)]
pub(crate) enum ReadError {
    /// The peer has closed the connection.
    #[error("the connection ended")]
    Closed,
    /// The peer sends a line that is too long.
    #[error(transparent)]
    Line(#[from] LineError),
    /// Nothing came within the time limit, at once without one, or reading failed.
    #[error(transparent)]
    Io(io::Error),
}

impl ReadError {
    /// Returns true if something may still come.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == ErrorKind::WouldBlock)
    }
}

/// A connection whose two sides send lines.
#[derive(Debug)]
pub(crate) struct LineConnection {
    stream: UnixStream,
    buffer: LineBuffer,
    /// Lines that were received and not taken yet.
    received: VecDeque<Vec<u8>>,
    unsent: Vec<u8>,
    /// Time from which `unsent` is not empty and nothing could be sent; `None` while it is empty.
    blocked_since: Option<Instant>,
}

impl LineConnection {
    /// The server's side of a connection, which never waits.
    pub(crate) fn from_accepted(stream: UnixStream, language: Language) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::new(stream, LineBuffer::new(language, MAX_LINE_BYTES)))
    }

    /// The client's side of a connection, whose calls each wait at most for `limit`.
    pub(crate) fn from_connected(
        stream: UnixStream,
        buffer: LineBuffer,
        limit: Duration,
    ) -> io::Result<Self> {
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(Self::new(stream, buffer))
    }

    fn new(stream: UnixStream, buffer: LineBuffer) -> Self {
        Self {
            stream,
            buffer,
            received: VecDeque::new(),
            unsent: Vec::new(),
            blocked_since: None,
        }
    }

    /// Reads the next piece of the stream; returns the number of lines that it completes.
    pub(crate) fn read_piece(&mut self) -> Result<usize, ReadError> {
        let mut piece = [0; MAX_LINE_BYTES];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(ReadError::Closed),
                Ok(n) => {
                    let lines = self.buffer.push(&piece[..n])?;
                    let count = lines.len();
                    self.received.extend(lines);
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::Io(error)),
            }
        }
    }

    /// Number of lines that were received and not taken.
    pub(crate) fn waiting_lines(&self) -> usize {
        self.received.len()
    }

    /// Takes the oldest line that was received, without its end.
    pub(crate) fn take_line(&mut self) -> Option<Vec<u8>> {
        self.received.pop_front()
    }

    /// Drops all lines that were received.
    pub(crate) fn drop_lines(&mut self) {
        self.received.clear();
    }

    /// Reads a piece and drops it; returns true if the peer has closed its side.
    pub(crate) fn drop_input(&mut self) -> bool {
        let mut piece = [0; MAX_LINE_BYTES];
        match self.stream.read(&mut piece) {
            Ok(0) => true,
            Ok(_) => false,
            Err(e) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Sends a whole line, or fails.
    pub(crate) fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        self.stream.write_all(line)
    }

    /// Sends a line, or keeps the part that the peer does not take yet for [`Self::flush`].
    pub(crate) fn queue_line(&mut self, line: Vec<u8>, now: Instant) -> io::Result<()> {
        self.unsent.extend(line);
        self.flush(now)
    }

    /// Sends as much of what is queued as the peer takes now. After an error nothing is queued.
    pub(crate) fn flush(&mut self, now: Instant) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(sent) => {
                    self.unsent.drain(..sent);
                    self.blocked_since = None;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked_since = self.blocked_since.or(Some(now));
                    return Ok(());
                }
                Err(error) => {
                    self.unsent.clear();
                    self.blocked_since = None;
                    return Err(error);
                }
            }
        }
        self.blocked_since = None;
        Ok(())
    }

    /// Returns true if the peer has not taken all that was queued.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Returns true if the peer has taken nothing of what is queued for longer than `limit`.
    pub(crate) fn is_blocked_for(&self, limit: Duration, now: Instant) -> bool {
        let since = self.blocked_since;
        since.is_some_and(|since| now.saturating_duration_since(since) > limit)
    }

    /// Closes one side of the connection, or both.
    pub(crate) fn shut_down(&self, side: Shutdown) {
        // It fails only if the peer has gone.
        let _ = self.stream.shutdown(side);
    }
}

impl AsFd for LineConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Longest line other than an answer of a daemon, its end included, bytes.
pub const MAX_LINE_BYTES: usize = 4_096;

/// A language of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Requests to a daemon and its answers.
    Control,
    /// Messages between the members of a group and their leader.
    Groups,
}

impl Language {
    /// Version that this Consort speaks. It rises with every change that an older peer would
    /// misunderstand.
    pub fn version(self) -> u32 {
        match self {
            Self::Control => 1,
            Self::Groups => 3,
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Control => "the control language",
            Self::Groups => "the language of groups",
        })
    }
}

/// Reason for which a line was not understood, or cannot be sent.
#[derive(Debug, Error)]
pub enum LineError {
    /// The line is of another version of its language.
    #[error("the line speaks version {found} of {language}, and this is version {}", language.version())]
    Version {
        /// The language of the connection.
        language: Language,
        /// Version of the line.
        found: u32,
    },
    /// The line is not JSON of the expected form.
    #[error("not a {} of {language}: {source}", noun(language))]
    Malformed {
        /// The language of the connection.
        language: Language,
        /// The fault that the parser found.
        source: serde_json::Error,
    },
    /// The line is longer than [`MAX_LINE_BYTES`].
    #[error("{} is at most {MAX_LINE_BYTES} bytes long", limited(.0))]
    TooLong(Language),
}

fn noun(language: &Language) -> &'static str {
    match language {
        Language::Control => "line",
        Language::Groups => "message",
    }
}

fn limited(language: &Language) -> String {
    match language {
        Language::Control => "a request".to_owned(),
        Language::Groups => format!("a message of {language}"),
    }
}

#[derive(Deserialize)]
struct LineVersion {
    version: u32,
}

/// Reads a line without its end as a document of type `T`, which has a `version`.
pub(super) fn parse_line<T: DeserializeOwned>(
    language: Language,
    line: &[u8],
) -> Result<T, LineError> {
    let malformed = |source| LineError::Malformed { language, source };
    // The version first, because a line of another version may have any other form.
    let LineVersion { version } = serde_json::from_slice(line).map_err(malformed)?;
    if version != language.version() {
        return Err(LineError::Version {
            language,
            found: version,
        });
    }
    serde_json::from_slice(line).map_err(malformed)
}

/// Writes a document as a line of at most `max_bytes`, its end included.
pub(super) fn write_line(
    language: Language,
    max_bytes: usize,
    document: &impl Serialize,
) -> Result<Vec<u8>, LineError> {
    let line = serde_json::to_vec(document);
    let mut line = line.map_err(|source| LineError::Malformed { language, source })?;
    line.push(b'\n');
    match line.len() > max_bytes {
        true => Err(LineError::TooLong(language)),
        false => Ok(line),
    }
}

/// Lines put together from the pieces that a stream returns, each of bounded length.
#[derive(Clone, Debug)]
pub struct LineBuffer {
    language: Language,
    max_bytes: usize,
    /// The beginning of a line that is not complete yet.
    partial: Vec<u8>,
}

impl LineBuffer {
    /// An empty buffer for lines of at most `max_bytes`, their ends included.
    pub fn new(language: Language, max_bytes: usize) -> Self {
        Self {
            language,
            max_bytes,
            partial: Vec::new(),
        }
    }

    /// Adds a piece; returns the lines that are complete now, without their ends.
    ///
    /// # Errors
    /// If a line is too long. The stream is then of no use any more, because the beginning of the
    /// next line cannot be found.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, LineError> {
        let mut complete = Vec::new();
        let mut parts = piece.split(|&byte| byte == b'\n').peekable();
        while let Some(part) = parts.next() {
            // Checked before the part is kept, so that a peer cannot fill the memory with an
            // endless line.
            if self.partial.len() + part.len() >= self.max_bytes {
                return Err(LineError::TooLong(self.language));
            }
            self.partial.extend_from_slice(part);
            if parts.peek().is_some() {
                complete.push(std::mem::take(&mut self.partial));
            }
        }
        Ok(complete)
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
        let flood = MAX_ACCEPTED + 5;
        let clients: Vec<UnixStream> = (0..flood)
            .map(|_| UnixStream::connect(&path).unwrap())
            .collect();
        let first = acceptor.accept_waiting(Instant::now());
        assert_eq!(first.len(), MAX_ACCEPTED);
        assert_eq!(acceptor.accept_waiting(Instant::now()).len(), 5);
        assert!(acceptor.fd().is_some());
        drop(clients);
    }

    #[test]
    fn failed_accept_pauses_polling() {
        // A socket that does not listen answers EINVAL, as one without descriptors does EMFILE.
        let (silent, _peer) = UnixStream::pair().unwrap();
        let listener = UnixListener::from(OwnedFd::from(silent));
        let mut acceptor = Acceptor::new(listener).unwrap();
        assert!(acceptor.accept_waiting(Instant::now()).is_empty());
        assert!(acceptor.fd().is_none());
        let long_ago = Instant::now().checked_sub(2 * ACCEPT_PAUSE).unwrap();
        assert!(acceptor.accept_waiting(long_ago).is_empty());
        assert!(acceptor.fd().is_some());
    }

    #[test]
    fn peer_that_reads_late_gets_all() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut connection = LineConnection::from_accepted(ours, Language::Control).unwrap();
        let (now, limit) = (Instant::now(), Duration::from_secs(10));
        connection.queue_line(vec![b'x'; 4 << 20], now).unwrap();
        assert!(connection.has_unsent());
        assert!(!connection.is_blocked_for(limit, now));
        assert!(connection.is_blocked_for(limit, now + 2 * limit));
        let mut received = 0;
        let mut piece = vec![0; 1 << 16];
        while received < 4 << 20 {
            received += theirs.read(&mut piece).unwrap();
            connection.flush(now).unwrap();
        }
        assert!(!connection.has_unsent());
    }
}

#[cfg(test)]
mod line_tests {
    use super::*;
    use proptest::prelude::*;

    fn buffer() -> LineBuffer {
        LineBuffer::new(Language::Groups, MAX_LINE_BYTES)
    }

    #[test]
    fn line_without_end_is_refused_at_limit() {
        let mut lines = buffer();
        let piece = [b'x'; 1_000];
        let taken = (0..10).take_while(|_| lines.push(&piece).is_ok()).count();
        assert_eq!(taken, 4);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_pieces(
            texts in prop::collection::vec("[a-z]{0,20}", 0..10),
            cut in 1usize..30,
        ) {
            let stream: String = texts.iter().map(|text| format!("{text}\n")).collect();
            let mut lines = buffer();
            let pieces = stream.as_bytes().chunks(cut);
            let found: Vec<Vec<u8>> = pieces.flat_map(|p| lines.push(p).unwrap()).collect();
            let texts: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
            prop_assert_eq!(found, texts);
        }
    }
}
