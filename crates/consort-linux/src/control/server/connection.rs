//! One client of the control server: the requests received from it, and the answers still to be
//! sent.

use crate::protocol::{DaemonAnswer, DaemonRequest, Language, LineConnection, Peer, ReadError};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Longest time that a peer may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time without a complete request: a silent peer would keep a place that others need.
pub(in crate::control) const MAX_SILENCE: Duration = Duration::from_secs(30);
/// Most requests that are read ahead of their turn, apart from those in the piece that was read
/// last. Further ones stay with the kernel, so that a peer that sends more has to wait.
const MAX_WAITING: usize = 64;
/// Longest time that a peer may take to leave after its last answer.
const FAREWELL: Duration = Duration::from_secs(1);

/// A connected client.
#[derive(Debug)]
pub(super) struct ClientConnection {
    connection: LineConnection,
    pub(super) peer: Peer,
    /// Time of the last complete line, request that was handed on, or answer.
    active: Instant,
    /// True while a request was handed on and not answered.
    awaits_answer: bool,
    /// True once the peer sends nothing more.
    is_gone: bool,
    /// Time of the last answer that the peer gets; `None` while it may make requests.
    dismissed: Option<Instant>,
}

impl ClientConnection {
    pub(super) fn new(stream: UnixStream, peer: Peer, now: Instant) -> io::Result<Self> {
        Ok(Self {
            connection: LineConnection::from_accepted(stream, Language::Control)?,
            peer,
            active: now,
            awaits_answer: false,
            is_gone: false,
            dismissed: None,
        })
    }

    /// Receives and sends as much as is possible now; returns false if the connection is over.
    pub(super) fn transfer_pending(&mut self, now: Instant) -> bool {
        if let Some(since) = self.dismissed {
            self.flush(now);
            let has_left = self.connection.drop_input();
            return !has_left && now.saturating_duration_since(since) <= FAREWELL;
        }
        self.read_lines(now);
        self.flush(now);
        let is_quiet = !self.awaits_answer
            && !self.connection.has_unsent()
            && self.connection.waiting_lines() == 0;
        if is_quiet && !self.is_gone && now.saturating_duration_since(self.active) > MAX_SILENCE {
            let seconds = MAX_SILENCE.as_secs();
            let why = format!("the conversation was silent for {seconds} s; connect again");
            self.dismiss(why, now);
            return true;
        }
        let is_over = self.connection.is_blocked_for(PATIENCE, now) || (self.is_gone && is_quiet);
        !is_over
    }

    fn may_read(&self) -> bool {
        let has_room = self.connection.waiting_lines() < MAX_WAITING;
        !self.is_gone && self.dismissed.is_none() && has_room
    }

    /// Returns true if a request may be read now. Otherwise the descriptor is not to be polled: it
    /// would stay readable.
    pub(super) fn is_open(&self) -> bool {
        !self.awaits_answer && self.may_read()
    }

    /// Sends the peer a last answer, and nothing after it. The connection stays open for a moment:
    /// a peer that is still writing would otherwise meet a broken pipe and not look for the reason.
    pub(super) fn dismiss(&mut self, why: String, now: Instant) {
        self.connection.drop_lines();
        self.answer(&DaemonAnswer::Error(why), now);
        self.dismissed = Some(now);
        self.flush(now);
    }

    /// Returns true if the peer was sent its last answer.
    pub(super) fn is_dismissed(&self) -> bool {
        self.dismissed.is_some()
    }

    /// Returns true if a line waits and none is being answered.
    pub(super) fn has_next(&self) -> bool {
        !self.awaits_answer && !self.connection.has_unsent() && self.connection.waiting_lines() > 0
    }

    /// The request in the next line; a faulty line is answered instead.
    pub(super) fn next_request(&mut self, now: Instant) -> Option<DaemonRequest> {
        if !self.has_next() {
            return None;
        }
        let line = self.connection.take_line()?;
        match DaemonRequest::parse(&line) {
            Ok(request) => {
                self.awaits_answer = true;
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
        self.awaits_answer = false;
        self.active = now;
        let sent = self.connection.queue_line(answer.to_line(), now);
        self.is_gone |= sent.is_err();
    }

    fn read_lines(&mut self, now: Instant) {
        while self.may_read() {
            match self.connection.read_piece() {
                Ok(0) => {}
                Ok(_) => self.active = now,
                Err(error) if error.is_timeout() => return,
                // The beginning of the next line cannot be found any more.
                Err(ReadError::Line(error)) => self.dismiss(error.to_string(), now),
                Err(ReadError::Closed | ReadError::Io(_)) => self.is_gone = true,
            }
        }
    }

    fn flush(&mut self, now: Instant) {
        self.is_gone |= self.connection.flush(now).is_err();
        if self.dismissed.is_some() && !self.connection.has_unsent() {
            self.connection.shut_down(Shutdown::Write);
        }
    }
}

impl AsFd for ClientConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}
