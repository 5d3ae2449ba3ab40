//! A leader's side of one conversation.

use super::line::Lines;
use super::message::{Answer, Demands, Joining, MAX_LINE_BYTES, MessageError, Request, line_of};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a peer may take for each thing that it has to say, until it is managed: one that says
/// no more keeps a place that others need. A member that was only slow notices and comes again.
const PATIENCE: Duration = Duration::from_secs(10);

/// How far a conversation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was said yet.
    New,
    /// It waits for terms to be settled.
    Proposes,
    /// The terms were told; the peer may start its command.
    Welcomed,
    /// This program is managed for it.
    Managed(u32),
}

/// What a peer wants now.
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

    /// Whether the peer has been given enough time to say what comes next.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        let is_its_turn = matches!(self.stage, Stage::New | Stage::Welcomed);
        is_its_turn && now.saturating_duration_since(self.since) > PATIENCE
    }

    /// Whether the peer was told the terms.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.stage, Stage::Welcomed | Stage::Managed(_))
    }

    /// The program that is managed for the peer.
    pub(super) fn program(&self) -> Option<u32> {
        match self.stage {
            Stage::Managed(pid) => Some(pid),
            Stage::New | Stage::Proposes | Stage::Welcomed => None,
        }
    }

    /// What was said since the last time, in order; at most a few lines at a time, so that nobody
    /// takes the leader's time. An error is the end of the conversation.
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
            // Nobody has more to say before it was answered.
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

    /// Answers; false when the peer does not take it.
    pub(super) fn answer(&mut self, answer: &Answer) -> bool {
        // A peer reads what it is told, so there is room for it unless the peer is hostile.
        line_of(answer).is_ok_and(|line| self.stream.write_all(&line).is_ok())
    }

    /// Ends the conversation; whatever follows from that comes when it is heard next.
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

/// Why a conversation ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    /// The peer has gone.
    #[error("the connection has ended")]
    Gone,
    /// It said what makes no sense.
    #[error(transparent)]
    Nonsense(#[from] MessageError),
    /// It said something at the wrong time.
    #[error("say hello once, then program once, then wake as often as needed")]
    OutOfTurn,
}
