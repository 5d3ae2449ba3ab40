//! A leader's side of one conversation.

use super::line::Lines;
use super::message::{Answer, Demands, Joining, MAX_LINE_BYTES, MessageError, Request, line_of};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Longest wait for each message of a peer until its program is managed: a silent peer would keep a
/// place that others need. A member that was only slow notices and comes again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Progress of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The peer has not said anything yet.
    New,
    /// The peer asked for open terms, and waits until they are settled.
    Proposes,
    /// The peer was told the terms, and may start its command.
    Welcomed,
    /// The peer's command is managed; its process id.
    Managed(u32),
}

/// A peer's request, accepted at this stage of the conversation.
#[derive(Debug, PartialEq)]
pub(super) enum Wish {
    Terms(Demands),
    Take(Joining),
    Wake(u32),
}

/// A peer that is connected.
#[derive(Debug)]
pub(super) struct Conversation {
    stream: UnixStream,
    /// The process at the other end.
    pub(super) peer: u32,
    lines: Lines,
    pub(super) stage: Stage,
    since: Instant,
}

impl Conversation {
    pub(super) fn new(stream: UnixStream, peer: u32, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            peer,
            lines: Lines::default(),
            stage: Stage::New,
            since: now,
        })
    }

    /// Goes on to the next stage.
    pub(super) fn enter(&mut self, stage: Stage, now: Instant) {
        (self.stage, self.since) = (stage, now);
    }

    /// Returns true if it is the peer's turn and [`PATIENCE`] has passed.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        let is_its_turn = matches!(self.stage, Stage::New | Stage::Welcomed);
        is_its_turn && now.saturating_duration_since(self.since) > PATIENCE
    }

    /// Returns true if the peer was told the terms.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.stage, Stage::Welcomed | Stage::Managed(_))
    }

    /// Process id of the peer's command, once it is managed.
    pub(super) fn program(&self) -> Option<u32> {
        match self.stage {
            Stage::Managed(pid) => Some(pid),
            Stage::New | Stage::Proposes | Stage::Welcomed => None,
        }
    }

    /// Takes in the peer's requests since the last call, in order; at most one per call, so that no
    /// peer takes up the leader's time. An error is the end of the conversation.
    pub(super) fn hear(&mut self) -> Result<Vec<Wish>, End> {
        let mut piece = [0; MAX_LINE_BYTES];
        let said = match self.stream.read(&mut piece) {
            Ok(0) => return Err(End::Gone),
            Ok(n) => self.lines.push(&piece[..n])?,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Vec::new()
            }
            Err(_) => return Err(End::Gone),
        };
        match self.stage {
            // However often it was said, the command is woken once.
            Stage::Managed(_) => said.iter().map(|line| self.wish(line)).take(1).collect(),
            // A peer has nothing more to say until its last request was answered.
            _ if said.len() > 1 => Err(End::OutOfTurn),
            _ => said.iter().map(|line| self.wish(line)).collect(),
        }
    }

    fn wish(&self, line: &[u8]) -> Result<Wish, End> {
        match (Request::parse(line)?, self.stage) {
            (Request::Hello(demands), Stage::New) => Ok(Wish::Terms(demands)),
            (Request::Program(joining), Stage::Welcomed) => Ok(Wish::Take(joining)),
            (Request::Wake, Stage::Managed(pid)) => Ok(Wish::Wake(pid)),
            _ => Err(End::OutOfTurn),
        }
    }

    /// Answers the peer; returns false when it does not take the answer.
    pub(super) fn answer(&mut self, answer: &Answer) -> bool {
        // A peer reads what it is told, so there is room for it unless the peer is hostile.
        line_of(answer).is_ok_and(|line| self.stream.write_all(&line).is_ok())
    }

    /// Closes the connection; the next [`hear`](Self::hear) then ends the conversation.
    pub(super) fn hang_up(&self) {
        // It fails only where the peer has gone already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl AsFd for Conversation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Reason for which a conversation ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    /// The peer has gone.
    #[error("the connection has ended")]
    Gone,
    /// A line of the peer is not a message.
    #[error(transparent)]
    Nonsense(#[from] MessageError),
    /// The peer sent a message at the wrong time.
    #[error("say hello once, then program once, then wake as often as needed")]
    OutOfTurn,
}
