//! A member's side of the conversation.

use super::error::GroupError;
use super::line::Lines;
use super::lock::Folder;
use super::message::{Answer, Demands, Joining, MAX_LINE_BYTES, Open, Request, Terms, line_of};
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
pub struct Member {
    group: GroupName,
    stream: UnixStream,
    lines: Lines,
    /// Lines that were received and not looked at yet.
    heard: VecDeque<Vec<u8>>,
    terms: Terms,
}

/// News from the leader that the member did not ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// No news.
    Nothing,
    /// Other [terms](Member::terms) hold.
    Terms,
    /// The leader is gone, or cannot be understood.
    Gone,
}

/// Outcome of a greeting.
#[derive(Debug)]
pub(super) enum Greeting {
    Welcome(Member),
    /// No leader listens: it is about to come, or has just gone.
    NobodyThere,
}

impl Member {
    /// Says hello to the leader of a group.
    pub(super) fn greet(folder: &Folder, demands: &Demands) -> Result<Greeting, GroupError> {
        let group = folder.group().clone();
        let Ok(stream) = UnixStream::connect(folder.socket()) else {
            return Ok(Greeting::NobodyThere);
        };
        let mut conversation = Self {
            group,
            stream,
            lines: Lines::default(),
            heard: VecDeque::new(),
            terms: nobody_s(),
        };
        match conversation.ask(&Request::Hello(demands.clone()))? {
            Some(Answer::Welcome(terms)) => {
                conversation.terms = terms;
                Ok(Greeting::Welcome(conversation))
            }
            Some(other) => Err(conversation.refusal(other)),
            None => Ok(Greeting::NobodyThere),
        }
    }

    /// The terms that hold in the group.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Hands a command over to the leader; returns false when the leader is gone.
    ///
    /// # Errors
    /// When the leader refuses or does not answer.
    pub fn hand_over(&mut self, program: Joining) -> Result<bool, GroupError> {
        match self.ask(&Request::Program(program))? {
            Some(Answer::Taken) => Ok(true),
            Some(other) => Err(self.refusal(other)),
            None => Ok(false),
        }
    }

    /// Asks the leader to let a paused command run, as it was sent a signal.
    pub fn wake(&mut self) {
        // A leader that is gone will be noticed, and its guardian wakes the command.
        let _ = self.say(&Request::Wake);
    }

    /// Takes in the leader's news since the last call; does not wait.
    pub fn hear(&mut self) -> Heard {
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        let speaks = matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1));
        if speaks && !matches!(self.read(), Ok(true)) {
            return Heard::Gone;
        }
        let before = self.terms.clone();
        match self.take_in() {
            Ok(None) if self.terms == before => Heard::Nothing,
            Ok(None) => Heard::Terms,
            // An answer without a question, or one that cannot be understood.
            Ok(Some(_)) | Err(_) => Heard::Gone,
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Option<Answer>, GroupError> {
        match self.say(request) {
            // A leader that refuses may close before the request comes; its reason can be read.
            Err(e) if !matches!(e.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return Ok(None);
            }
            _ => {}
        }
        loop {
            if let Some(answer) = self.take_in()? {
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

    fn say(&mut self, request: &Request) -> io::Result<()> {
        let line = line_of(request).map_err(io::Error::other)?;
        self.stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        self.stream.write_all(&line)
    }

    /// The first answer among the lines that were read; terms are taken in on the way.
    fn take_in(&mut self) -> Result<Option<Answer>, GroupError> {
        while let Some(line) = self.heard.pop_front() {
            match Answer::parse(&line) {
                Ok(Answer::Terms(terms)) => self.terms = terms,
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

    fn refusal(&self, answer: Answer) -> GroupError {
        let why = match answer {
            Answer::Refused(why) => why,
            Answer::Welcome(_) | Answer::Taken | Answer::Terms(_) => {
                "its leader answers another question".to_owned()
            }
        };
        let group = self.group.to_string();
        GroupError::Refused { group, why }
    }
}

impl AsFd for Member {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Placeholder for the terms before the leader has told any.
fn nobody_s() -> Terms {
    Terms {
        leader: 0,
        run: String::new(),
        policy: String::new(),
        interval_ms: 0,
        dry_run: false,
        profile: None,
        open: Open::default(),
    }
}
