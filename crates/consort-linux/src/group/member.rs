//! A member's side of its connection to the leader.

use super::lock::GroupFolder;
use super::{GroupError, GroupName};
use crate::protocol::{
    Demands, GroupTerms, JoiningCommand, Language, LeaderMessage, LineBuffer, LineConnection,
    MAX_LINE_BYTES, MemberMessage, OpenTerms, ReadError,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest wait for an answer; turns of a leader take milliseconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A member of a group: its connection to the leader, and the terms that hold.
#[derive(Debug)]
pub struct GroupMember {
    group: GroupName,
    connection: LineConnection,
    terms: GroupTerms,
}

/// News from the leader that the member did not request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderNews {
    /// No news.
    Nothing,
    /// Other [terms](GroupMember::terms) hold.
    Terms,
    /// The leader is gone, or cannot be understood.
    Gone,
}

impl GroupMember {
    /// Sends `hello` to the leader of a group. `None` if no leader listens: it is about to come, or
    /// has just gone.
    pub(super) fn greet(
        folder: &GroupFolder,
        demands: &Demands,
    ) -> Result<Option<Self>, GroupError> {
        let buffer = LineBuffer::new(Language::Groups, MAX_LINE_BYTES);
        let connected = UnixStream::connect(folder.socket())
            .and_then(|stream| LineConnection::from_connected(stream, buffer, ANSWER_LIMIT));
        let Ok(connection) = connected else {
            return Ok(None);
        };
        let mut member = Self {
            group: folder.group().clone(),
            connection,
            // A placeholder until the leader has sent its terms.
            terms: GroupTerms {
                leader: 0,
                run: String::new(),
                policy: String::new(),
                interval_ms: 0,
                dry_run: false,
                profile: None,
                open: OpenTerms::default(),
            },
        };
        match member.send_request(&MemberMessage::Hello(demands.clone()))? {
            Some(LeaderMessage::Welcome(terms)) => {
                member.terms = terms;
                Ok(Some(member))
            }
            Some(other) => Err(member.refusal(other)),
            None => Ok(None),
        }
    }

    /// The terms that hold in the group.
    pub fn terms(&self) -> &GroupTerms {
        &self.terms
    }

    /// Hands a command over to the leader; returns false if the leader is gone.
    ///
    /// # Errors
    /// If the leader refuses or does not answer.
    pub fn hand_over(&mut self, program: JoiningCommand) -> Result<bool, GroupError> {
        match self.send_request(&MemberMessage::Program(program))? {
            Some(LeaderMessage::Taken) => Ok(true),
            Some(other) => Err(self.refusal(other)),
            None => Ok(false),
        }
    }

    /// Has the leader resume a paused command, because it was sent a signal.
    pub fn wake(&mut self) {
        // A leader that is gone will be noticed, and its guardian wakes the command.
        let _ = self.write_request(&MemberMessage::Wake);
    }

    /// Reads the leader's news since the last call; does not wait.
    pub fn poll_news(&mut self) -> LeaderNews {
        let mut fds = [PollFd::new(self.connection.as_fd(), PollFlags::POLLIN)];
        let is_readable = matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1));
        if is_readable && self.connection.read_piece().is_err() {
            return LeaderNews::Gone;
        }
        let before = self.terms.clone();
        match self.next_answer() {
            Ok(None) if self.terms == before => LeaderNews::Nothing,
            Ok(None) => LeaderNews::Terms,
            // An answer without a question, or one that cannot be understood.
            Ok(Some(_)) | Err(_) => LeaderNews::Gone,
        }
    }

    /// Sends a request and waits for the answer; `None` if the leader is gone.
    fn send_request(
        &mut self,
        request: &MemberMessage,
    ) -> Result<Option<LeaderMessage>, GroupError> {
        match self.write_request(request) {
            // A leader that refuses may close before the request comes; its reason can be read.
            Err(e) if !matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return Ok(None);
            }
            _ => {}
        }
        loop {
            if let Some(answer) = self.next_answer()? {
                return Ok(Some(answer));
            }
            match self.connection.read_piece() {
                Ok(_) => {}
                Err(error) if error.is_timeout() => {
                    let group = self.group.to_string();
                    return Err(GroupError::Silent { group });
                }
                Err(ReadError::Closed | ReadError::Line(_) | ReadError::Io(_)) => return Ok(None),
            }
        }
    }

    fn write_request(&mut self, request: &MemberMessage) -> io::Result<()> {
        let line = request.to_line().map_err(io::Error::other)?;
        self.connection.write_line(&line)
    }

    /// The first answer among the lines that were read; terms before it are adopted.
    fn next_answer(&mut self) -> Result<Option<LeaderMessage>, GroupError> {
        while let Some(line) = self.connection.take_line() {
            match LeaderMessage::parse(&line) {
                Ok(LeaderMessage::Terms(terms)) => self.terms = terms,
                Ok(answer) => return Ok(Some(answer)),
                Err(source) => {
                    let group = self.group.to_string();
                    return Err(GroupError::Foreign { group, source });
                }
            }
        }
        Ok(None)
    }

    fn refusal(&self, answer: LeaderMessage) -> GroupError {
        let why = match answer {
            LeaderMessage::Refused(why) => why,
            LeaderMessage::Welcome(_) | LeaderMessage::Taken | LeaderMessage::Terms(_) => {
                "its leader answers another question".to_owned()
            }
        };
        let group = self.group.to_string();
        GroupError::Refused { group, why }
    }
}

impl AsFd for GroupMember {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}
