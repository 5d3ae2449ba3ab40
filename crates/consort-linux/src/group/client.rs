//! A member's side of the conversation.

use super::error::GroupError;
use super::line_buffer::LineBuffer;
use super::lock::GroupFolder;
use super::message::{
    Demands, GroupTerms, JoiningCommand, LeaderMessage, MAX_LINE_BYTES, MemberMessage, OpenTerms,
    to_line,
};
use super::name::GroupName;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest wait for an answer; turns of a leader take milliseconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A member of a group: its connection to the leader, and the terms that hold.
#[derive(Debug)]
pub struct GroupMember {
    group: GroupName,
    stream: UnixStream,
    lines: LineBuffer,
    /// Lines that were received and not looked at yet.
    heard: VecDeque<Vec<u8>>,
    terms: GroupTerms,
}

/// News from the leader that the member did not ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaderNews {
    /// No news.
    Nothing,
    /// Other [terms](GroupMember::terms) hold.
    Terms,
    /// The leader is gone, or cannot be understood.
    Gone,
}

/// Outcome of a greeting.
#[derive(Debug)]
pub(super) enum GreetingOutcome {
    Welcome(GroupMember),
    /// No leader listens: it is about to come, or has just gone.
    NobodyThere,
}

impl GroupMember {
    /// Says hello to the leader of a group.
    pub(super) fn greet(
        folder: &GroupFolder,
        demands: &Demands,
    ) -> Result<GreetingOutcome, GroupError> {
        let group = folder.group().clone();
        let Ok(stream) = UnixStream::connect(folder.socket()) else {
            return Ok(GreetingOutcome::NobodyThere);
        };
        let mut conversation = Self {
            group,
            stream,
            lines: LineBuffer::default(),
            heard: VecDeque::new(),
            terms: placeholder_terms(),
        };
        match conversation.send_request(&MemberMessage::Hello(demands.clone()))? {
            Some(LeaderMessage::Welcome(terms)) => {
                conversation.terms = terms;
                Ok(GreetingOutcome::Welcome(conversation))
            }
            Some(other) => Err(conversation.refusal(other)),
            None => Ok(GreetingOutcome::NobodyThere),
        }
    }

    /// The terms that hold in the group.
    pub fn terms(&self) -> &GroupTerms {
        &self.terms
    }

    /// Hands a command over to the leader; returns false when the leader is gone.
    ///
    /// # Errors
    /// When the leader refuses or does not answer.
    pub fn hand_over(&mut self, program: JoiningCommand) -> Result<bool, GroupError> {
        match self.send_request(&MemberMessage::Program(program))? {
            Some(LeaderMessage::Taken) => Ok(true),
            Some(other) => Err(self.refusal(other)),
            None => Ok(false),
        }
    }

    /// Asks the leader to let a paused command run, as it was sent a signal.
    pub fn wake(&mut self) {
        // A leader that is gone will be noticed, and its guardian wakes the command.
        let _ = self.write_request(&MemberMessage::Wake);
    }

    /// Takes in the leader's news since the last call; does not wait.
    pub fn poll_news(&mut self) -> LeaderNews {
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        let speaks = matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1));
        if speaks && !matches!(self.read(), Ok(true)) {
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
            match self.read() {
                Ok(true) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let group = self.group.to_string();
                    return Err(GroupError::Silent { group });
                }
                Ok(false) | Err(_) => return Ok(None),
            }
        }
    }

    fn write_request(&mut self, request: &MemberMessage) -> io::Result<()> {
        let line = to_line(request).map_err(io::Error::other)?;
        self.stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        self.stream.write_all(&line)
    }

    /// The first answer among the lines that were read; terms are taken in on the way.
    fn next_answer(&mut self) -> Result<Option<LeaderMessage>, GroupError> {
        while let Some(line) = self.heard.pop_front() {
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

    /// Reads the next piece of the stream; returns false when the leader is gone.
    fn read(&mut self) -> io::Result<bool> {
        self.stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        let mut piece = [0; MAX_LINE_BYTES];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    let whole = self.lines.push(&piece[..n]).map_err(io::Error::other)?;
                    self.heard.extend(whole);
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
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
        self.stream.as_fd()
    }
}

/// Placeholder for the terms before the leader has told any.
fn placeholder_terms() -> GroupTerms {
    GroupTerms {
        leader: 0,
        run: String::new(),
        policy: String::new(),
        interval_ms: 0,
        dry_run: false,
        profile: None,
        open: OpenTerms::default(),
    }
}
