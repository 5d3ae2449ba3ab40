//! One peer at the control socket: the requests received from it, and the answers still to be sent.

use super::message::{Answer, MAX_ANSWER_BYTES, Request};
use crate::group::{Lines, MAX_LINE_BYTES};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Uid;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Longest time that a peer may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most requests that may wait for their turn; a peer that sends more is hung up on.
const MOST_WAITING: usize = 64;

/// The client at the other end of a connection, as the kernel tells it.
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
}

/// Effective user and process at the other end.
pub(super) fn peer_of(stream: &UnixStream) -> io::Result<Peer> {
    let peer = getsockopt(stream, PeerCredentials)?;
    Ok(Peer {
        uid: peer.uid(),
        pid: peer.pid().cast_unsigned(),
    })
}

/// A peer that is connected.
#[derive(Debug)]
pub(super) struct Conversation {
    stream: UnixStream,
    pub(super) peer: Peer,
    lines: Lines,
    heard: VecDeque<Vec<u8>>,
    out: Vec<u8>,
    /// Time from which `out` is not empty and nothing could be sent; none while it is empty.
    since: Option<Instant>,
    /// True while a request was handed on and not answered.
    pub(super) asks: bool,
    gone: bool,
}

impl Conversation {
    pub(super) fn new(stream: UnixStream, peer: Peer) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            peer,
            lines: Lines::default(),
            heard: VecDeque::new(),
            out: Vec::new(),
            since: None,
            asks: false,
            gone: false,
        })
    }

    /// Receives and sends as much as is possible now; returns false when the conversation is over.
    pub(super) fn move_on(&mut self, now: Instant) -> bool {
        self.hear();
        self.send(now);
        let stuck = self.since.is_some_and(|since| now - since > PATIENCE);
        let finished = self.gone && self.out.is_empty() && self.heard.is_empty() && !self.asks;
        !stuck && !finished && self.heard.len() <= MOST_WAITING
    }

    /// Returns true if requests may still be received, none being answered at the moment.
    pub(super) fn is_open(&self) -> bool {
        !self.asks && !self.gone
    }

    /// The next request, unless one is still to be answered; a faulty line is answered at once.
    pub(super) fn next(&mut self) -> Option<Request> {
        while !self.asks && self.out.is_empty() {
            let line = self.heard.pop_front()?;
            match Request::parse(&line) {
                Ok(request) => {
                    self.asks = true;
                    return Some(request);
                }
                Err(error) => self.answer(&Answer::Error(error.to_string())),
            }
        }
        None
    }

    /// Answers the request that was handed on.
    pub(super) fn answer(&mut self, answer: &Answer) {
        self.asks = false;
        self.out.extend(answer.line());
        self.send(Instant::now());
    }

    fn hear(&mut self) {
        let mut piece = [0; MAX_LINE_BYTES];
        while !self.gone && self.heard.len() <= MOST_WAITING {
            match self.stream.read(&mut piece) {
                Ok(0) => self.gone = true,
                Ok(n) => match self.lines.push(&piece[..n]) {
                    Ok(lines) => self.heard.extend(lines),
                    // Where the next line begins cannot be told any more.
                    Err(_) => {
                        self.answer(&Answer::Error(
                            super::message::RequestError::TooLong.to_string(),
                        ));
                        self.gone = true;
                    }
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
        match self.out.is_empty() {
            true => self.since = None,
            false => self.since = self.since.or(Some(now)),
        }
    }
}

impl AsFd for Conversation {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
