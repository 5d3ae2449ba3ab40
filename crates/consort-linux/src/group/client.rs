//! A member's side of the conversation.

use super::error::GroupError;
use super::line::Lines;
use super::lock::Folder;
use super::message::{Answer, Demands, Joining, MAX_LINE_BYTES, Request, Terms, line_of};
use super::name::GroupName;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long an answer may take: turns of a leader take milliseconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// A member of a group, with the terms that hold there.
#[derive(Debug)]
pub struct Member {
    group: GroupName,
    stream: UnixStream,
    lines: Lines,
    terms: Terms,
}

/// What came of a greeting.
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

    /// The terms that hold.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Hands a command over to the leader; false when the leader is gone.
    ///
    /// # Errors
    /// A leader that refuses or does not answer.
    pub fn hand_over(&mut self, program: Joining) -> Result<bool, GroupError> {
        match self.ask(&Request::Program(program))? {
            Some(Answer::Taken) => Ok(true),
            Some(other) => Err(self.refusal(other)),
            None => Ok(false),
        }
    }

    /// Asks for the command to run, as it was sent a signal.
    pub fn wake(&mut self) {
        // A leader that is gone will be noticed, and its guardian wakes the command.
        let _ = self.say(&Request::Wake);
    }

    /// Whether the leader is gone; does not wait.
    pub fn is_abandoned(&self) -> bool {
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1)) {
            return false;
        }
        // A leader says nothing of its own accord: what can be read is its end.
        let mut piece = [0; MAX_LINE_BYTES];
        !matches!((&self.stream).read(&mut piece), Ok(1..))
    }

    fn ask(&mut self, request: &Request) -> Result<Option<Answer>, GroupError> {
        if self.say(request).is_err() {
            return Ok(None);
        }
        match self.listen() {
            Ok(Some(line)) => Answer::parse(&line).map(Some).map_err(|source| {
                let group = self.group.to_string();
                GroupError::Foreign { group, source }
            }),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let group = self.group.to_string();
                Err(GroupError::Silent { group })
            }
            Ok(None) | Err(_) => Ok(None),
        }
    }

    fn say(&mut self, request: &Request) -> io::Result<()> {
        let line = line_of(request).map_err(io::Error::other)?;
        self.stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        self.stream.write_all(&line)
    }

    /// The next line; none when the leader is gone.
    fn listen(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.stream.set_read_timeout(Some(ANSWER_LIMIT))?;
        let mut piece = [0; MAX_LINE_BYTES];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(n) => {
                    let whole = self.lines.push(&piece[..n]).map_err(io::Error::other)?;
                    if let Some(line) = whole.into_iter().next() {
                        return Ok(Some(line));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn refusal(&self, answer: Answer) -> GroupError {
        let why = match answer {
            Answer::Refused(why) => why,
            Answer::Welcome(_) | Answer::Taken => "its leader answers another question".to_owned(),
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

/// Terms before any were told.
fn nobody_s() -> Terms {
    Terms {
        leader: 0,
        run: String::new(),
        journal: std::path::PathBuf::new(),
        policy: String::new(),
        interval_ms: 0,
        dry_run: false,
        profile: None,
    }
}
