//! A leader's side of one conversation.

use super::line::Lines;
use super::message::{Answer, Demands, Joining, MAX_LINE_BYTES, MessageError, Request, line_of};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a peer may take until it has said what it wants.
const GREETING_LIMIT: Duration = Duration::from_secs(10);

/// How far a conversation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was said yet.
    New,
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

    /// Whether the peer has been given enough time to say hello.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        self.stage == Stage::New && now.duration_since(self.since) > GREETING_LIMIT
    }

    /// The program that is managed for the peer.
    pub(super) fn program(&self) -> Option<u32> {
        match self.stage {
            Stage::Managed(pid) => Some(pid),
            Stage::New | Stage::Welcomed => None,
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
        // The peer waits for this one line, so there is room for it unless the peer is hostile.
        line_of(answer).is_ok_and(|line| self.stream.write_all(&line).is_ok())
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
