//! A leader's side of one conversation.

use super::line_buffer::LineBuffer;
use super::message::{
    Demands, JoiningCommand, LeaderMessage, MAX_LINE_BYTES, MemberMessage, MessageError, to_line,
};
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
pub(super) enum JoinStage {
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
pub(super) enum AcceptedRequest {
    Terms(Demands),
    Take(JoiningCommand),
    Wake(u32),
}

/// A peer that is connected.
#[derive(Debug)]
pub(super) struct MemberConnection {
    stream: UnixStream,
    /// The process at the other end.
    pub(super) peer: u32,
    lines: LineBuffer,
    pub(super) stage: JoinStage,
    since: Instant,
}

impl MemberConnection {
    pub(super) fn new(stream: UnixStream, peer: u32, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            peer,
            lines: LineBuffer::default(),
            stage: JoinStage::New,
            since: now,
        })
    }

    /// Goes on to the next stage.
    pub(super) fn enter(&mut self, stage: JoinStage, now: Instant) {
        (self.stage, self.since) = (stage, now);
    }

    /// Returns true if it is the peer's turn and [`PATIENCE`] has passed.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        let is_its_turn = matches!(self.stage, JoinStage::New | JoinStage::Welcomed);
        is_its_turn && now.saturating_duration_since(self.since) > PATIENCE
    }

    /// Returns true if the peer was told the terms.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.stage, JoinStage::Welcomed | JoinStage::Managed(_))
    }

    /// Process id of the peer's command, once it is managed.
    pub(super) fn program(&self) -> Option<u32> {
        match self.stage {
            JoinStage::Managed(pid) => Some(pid),
            JoinStage::New | JoinStage::Proposes | JoinStage::Welcomed => None,
        }
    }

    /// Takes in the peer's requests since the last call, in order; at most one per call, so that no
    /// peer takes up the leader's time. An error is the end of the conversation.
    pub(super) fn read_requests(&mut self) -> Result<Vec<AcceptedRequest>, DisconnectReason> {
        let mut piece = [0; MAX_LINE_BYTES];
        let said = match self.stream.read(&mut piece) {
            Ok(0) => return Err(DisconnectReason::Gone),
            Ok(n) => self.lines.push(&piece[..n])?,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Vec::new()
            }
            Err(_) => return Err(DisconnectReason::Gone),
        };
        match self.stage {
            // However often it was said, the command is woken once.
            JoinStage::Managed(_) => said
                .iter()
                .map(|line| self.accept_request(line))
                .take(1)
                .collect(),
            // A peer has nothing more to say until its last request was answered.
            _ if said.len() > 1 => Err(DisconnectReason::OutOfTurn),
            _ => said.iter().map(|line| self.accept_request(line)).collect(),
        }
    }

    fn accept_request(&self, line: &[u8]) -> Result<AcceptedRequest, DisconnectReason> {
        match (MemberMessage::parse(line)?, self.stage) {
            (MemberMessage::Hello(demands), JoinStage::New) => Ok(AcceptedRequest::Terms(demands)),
            (MemberMessage::Program(joining), JoinStage::Welcomed) => {
                Ok(AcceptedRequest::Take(joining))
            }
            (MemberMessage::Wake, JoinStage::Managed(pid)) => Ok(AcceptedRequest::Wake(pid)),
            _ => Err(DisconnectReason::OutOfTurn),
        }
    }

    /// Answers the peer; returns false when it does not take the answer.
    pub(super) fn answer(&mut self, answer: &LeaderMessage) -> bool {
        // A peer reads what it is told, so there is room for it unless the peer is hostile.
        to_line(answer).is_ok_and(|line| self.stream.write_all(&line).is_ok())
    }

    /// Closes the connection; the next [`read_requests`](Self::read_requests) then ends the conversation.
    pub(super) fn hang_up(&self) {
        // It fails only where the peer has gone already.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl AsFd for MemberConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Reason for which a conversation ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum DisconnectReason {
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
