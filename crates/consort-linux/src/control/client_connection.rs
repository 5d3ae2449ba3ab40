//! One peer at the control socket: the requests received from it, and the answers still to be sent.

use super::message::{DaemonAnswer, DaemonRequest, MAX_ANSWER_BYTES, RequestError};
use crate::group::{LineBuffer, MAX_LINE_BYTES};
use crate::proc::ThreadUsers;
use consort_core::ThreadId;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Uid;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest time that a peer may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time without a whole request: a silent peer would keep a place that others need.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// Most requests that are read ahead of their turn, apart from those in the piece that was read
/// last. Further ones stay with the kernel, so that a peer that sends more has to wait.
const MOST_WAITING: usize = 64;
/// Longest time that a peer may take to leave after its last answer.
const FAREWELL: Duration = Duration::from_secs(1);

/// The client at the other end of a connection, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Id of the effective user.
    pub uid: u32,
    /// Process id; 0 for a process in another PID namespace.
    pub pid: u32,
}

impl Peer {
    /// Returns true for clients that may ask for everything: root, and the user that runs the
    /// daemon.
    pub fn is_master(self) -> bool {
        self.uid == 0 || self.uid == Uid::effective().as_raw()
    }

    /// Returns true if the client may see a thread: it acts for the client's user alone.
    pub fn may_see(self, id: ThreadId) -> bool {
        let users = || ThreadUsers::from_thread(Path::new("/"), id);
        self.is_master() || users().is_ok_and(|users| users.other_than(self.uid).is_none())
    }

    /// The same for the process of a pid.
    pub fn may_see_process(self, pid: u32) -> bool {
        let users = || ThreadUsers::from_process(Path::new("/"), pid);
        self.is_master() || users().is_ok_and(|users| users.other_than(self.uid).is_none())
    }
}

/// Effective user and process at the other end.
pub(super) fn peer_credentials(stream: &UnixStream) -> io::Result<Peer> {
    let peer = getsockopt(stream, PeerCredentials)?;
    Ok(Peer {
        uid: peer.uid(),
        pid: peer.pid().cast_unsigned(),
    })
}

/// A peer that is connected.
#[derive(Debug)]
pub(super) struct ClientConnection {
    stream: UnixStream,
    pub(super) peer: Peer,
    lines: LineBuffer,
    heard: VecDeque<Vec<u8>>,
    out: Vec<u8>,
    /// Time from which `out` is not empty and nothing could be sent; none while it is empty.
    since: Option<Instant>,
    /// Time of the last whole line, request that was handed on, or answer.
    active: Instant,
    /// True while a request was handed on and not answered.
    asks: bool,
    /// True once the peer sends nothing more.
    gone: bool,
    /// Time of the last answer that the peer gets; `None` while it may ask.
    dismissed: Option<Instant>,
}

impl ClientConnection {
    pub(super) fn new(stream: UnixStream, peer: Peer, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            peer,
            lines: LineBuffer::default(),
            heard: VecDeque::new(),
            out: Vec::new(),
            since: None,
            active: now,
            asks: false,
            gone: false,
            dismissed: None,
        })
    }

    /// Receives and sends as much as is possible now; returns false when the conversation is over.
    pub(super) fn transfer_pending(&mut self, now: Instant) -> bool {
        if let Some(since) = self.dismissed {
            self.send(now);
            return !self.discard_input() && now.saturating_duration_since(since) <= FAREWELL;
        }
        self.read_lines(now);
        self.send(now);
        let is_quiet = !self.asks && self.out.is_empty() && self.heard.is_empty();
        if is_quiet && !self.gone && now.saturating_duration_since(self.active) > SILENCE {
            let seconds = SILENCE.as_secs();
            self.dismiss(
                format!("the conversation was silent for {seconds} s; connect again"),
                now,
            );
            return true;
        }
        let stuck = self
            .since
            .is_some_and(|since| now.saturating_duration_since(since) > PATIENCE);
        let is_over = stuck || (self.gone && is_quiet);
        !is_over
    }

    /// Returns true if a request may be read now. Otherwise the descriptor is not to be polled: it
    /// would stay readable.
    pub(super) fn is_open(&self) -> bool {
        !self.asks && !self.gone && self.dismissed.is_none() && self.heard.len() < MOST_WAITING
    }

    /// Sends the peer a last answer, and nothing after it. The connection stays open for a moment:
    /// a peer that is still writing would otherwise meet a broken pipe and not look for the reason.
    pub(super) fn dismiss(&mut self, why: String, now: Instant) {
        self.heard.clear();
        self.answer(&DaemonAnswer::Error(why), now);
        self.dismissed = Some(now);
        self.send(now);
    }

    /// Returns true if the peer was sent its last answer.
    pub(super) fn is_dismissed(&self) -> bool {
        self.dismissed.is_some()
    }

    /// Reads on and discards all; returns true if the peer has closed its side.
    fn discard_input(&mut self) -> bool {
        let mut piece = [0; MAX_LINE_BYTES];
        match self.stream.read(&mut piece) {
            Ok(0) => true,
            Ok(_) => false,
            Err(e) => !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    /// Returns true if a line waits and none is being answered.
    pub(super) fn has_next(&self) -> bool {
        !self.asks && self.out.is_empty() && !self.heard.is_empty()
    }

    /// The request in the next line; a faulty line is answered instead.
    pub(super) fn next(&mut self, now: Instant) -> Option<DaemonRequest> {
        if !self.has_next() {
            return None;
        }
        let line = self.heard.pop_front()?;
        match DaemonRequest::parse(&line) {
            Ok(request) => {
                self.asks = true;
                self.active = now;
                Some(request)
            }
            Err(error) => {
                self.answer(&DaemonAnswer::Error(error.to_string()), now);
                None
            }
        }
    }

    /// Time for which the request that was handed on has waited.
    pub(super) fn wait_time(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.active)
    }

    /// Answers the request that was handed on.
    pub(super) fn answer(&mut self, answer: &DaemonAnswer, now: Instant) {
        self.asks = false;
        self.active = now;
        self.out.extend(answer.to_line());
        self.send(now);
    }

    fn read_lines(&mut self, now: Instant) {
        let mut piece = [0; MAX_LINE_BYTES];
        while !self.gone && self.dismissed.is_none() && self.heard.len() < MOST_WAITING {
            match self.stream.read(&mut piece) {
                Ok(0) => self.gone = true,
                Ok(n) => match self.lines.push(&piece[..n]) {
                    Ok(lines) => {
                        if !lines.is_empty() {
                            self.active = now;
                        }
                        self.heard.extend(lines);
                    }
                    // The beginning of the next line cannot be found any more.
                    Err(_) => self.dismiss(RequestError::TooLong.to_string(), now),
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.gone = true,
            }
        }
    }

    fn send(&mut self, now: Instant) {
        while !self.out.is_empty() {
            match self.stream.write(&self.out) {
                Ok(sent) => {
                    self.out.drain(..sent);
                    self.since = None;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.gone = true;
                    self.out.clear();
                }
            }
        }
        debug_assert!(self.out.len() <= 2 * MAX_ANSWER_BYTES);
        if !self.out.is_empty() {
            self.since = self.since.or(Some(now));
            return;
        }
        self.since = None;
        if self.dismissed.is_some() {
            // It fails only if the peer has gone.
            let _ = self.stream.shutdown(Shutdown::Write);
        }
    }
}

impl AsFd for ClientConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
