//! The daemon's side of the control socket.

use super::conversation::{Conversation, Peer, peer_of};
use super::message::{Answer, Request};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Most conversations at a time.
const MOST: usize = 64;
/// Most conversations of one user at a time.
const MOST_OF_USER: usize = 16;
/// Requests that one user may make per second; the same number may also come at once.
const REQUESTS_PER_S: u32 = 200;

/// A request that the run is to carry out; [`Desk::answer`] it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The conversation.
    pub conversation: u64,
    /// The client that asks.
    pub peer: Peer,
    /// The request.
    pub request: Request,
}

/// A function that answers requests which change nothing, and refuses those which are wrong on
/// their face; none where the run is to carry the request out.
pub type Clerk = Box<dyn FnMut(Peer, &Request) -> Option<Result<Value, String>>>;

/// Reason for which there is no control socket.
#[derive(Debug, Error)]
pub enum DeskError {
    /// Another daemon listens there already.
    #[error("a daemon runs already, process {pid}, at {}; stop it first", path.display())]
    Taken {
        /// Process id of that daemon; 0 where it is not known.
        pid: u32,
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("cannot listen at {}: {source}", path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// A control socket with its conversations. Dropping it removes the socket.
pub struct Desk {
    path: PathBuf,
    listener: UnixListener,
    clerk: Clerk,
    conversations: BTreeMap<u64, Conversation>,
    next: u64,
    budgets: BTreeMap<u32, Budget>,
}

/// Requests that a user may still make at once, refilled over time.
#[derive(Clone, Copy, Debug)]
struct Budget {
    requests: f64,
    at: Instant,
}

impl Budget {
    /// Takes one request out of the budget; returns false where there is none left.
    fn takes(&mut self, now: Instant) -> bool {
        let most = f64::from(REQUESTS_PER_S);
        let earned = (now - self.at).as_secs_f64() * most;
        self.requests = (self.requests + earned).min(most);
        self.at = now;
        let within = self.requests >= 1.0;
        self.requests -= f64::from(u8::from(within));
        within
    }
}

impl Desk {
    /// Listens at `path`; with `for_all`, every user of the host may speak there. A socket that a
    /// killed daemon has left is replaced.
    ///
    /// # Errors
    /// [`DeskError::Taken`] where a daemon listens already, [`DeskError::Listen`] where
    /// the socket cannot be made.
    pub fn open(path: &Path, for_all: bool, clerk: Clerk) -> Result<Self, DeskError> {
        if let Ok(stream) = UnixStream::connect(path) {
            let pid = peer_of(&stream).map_or(0, |peer| peer.pid);
            let path = path.to_owned();
            return Err(DeskError::Taken { pid, path });
        }
        let listener = listen(path, for_all).map_err(|source| DeskError::Listen {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            listener,
            clerk,
            conversations: BTreeMap::new(),
            next: 0,
            budgets: BTreeMap::new(),
        })
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true while somebody is in a conversation, and so to be attended even if nothing comes.
    pub(crate) fn is_talking(&self) -> bool {
        !self.conversations.is_empty()
    }

    /// Descriptors to poll for reading; then [`Desk::attend`].
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let peers = self.conversations.values().filter(|c| c.is_open());
        std::iter::once(self.listener.as_fd()).chain(peers.map(AsFd::as_fd))
    }

    /// Accepts new clients, answers requests that the clerk can answer, and returns those that are
    /// to be carried out. Does not wait.
    pub fn attend(&mut self, now: Instant) -> Vec<Asked> {
        self.let_in();
        self.conversations.retain(|_, c| c.move_on(now));
        let ids: Vec<u64> = self.conversations.keys().copied().collect();
        let asked = ids.into_iter().filter_map(|id| self.hear(id, now));
        asked.collect()
    }

    /// Answers a request that was [asked](Asked).
    pub fn answer(&mut self, conversation: u64, result: Result<Value, String>) {
        if let Some(peer) = self.conversations.get_mut(&conversation) {
            peer.answer(&Answer::from(result));
        }
    }

    fn hear(&mut self, id: u64, now: Instant) -> Option<Asked> {
        let conversation = self.conversations.get_mut(&id)?;
        let peer = conversation.peer;
        let fresh = Budget {
            requests: f64::from(REQUESTS_PER_S),
            at: now,
        };
        let budget = self.budgets.entry(peer.uid).or_insert(fresh);
        if !budget.takes(now) {
            return None;
        }
        let request = conversation.next()?;
        match (self.clerk)(peer, &request) {
            Some(result) => {
                conversation.answer(&Answer::from(result));
                None
            }
            None => Some(Asked {
                conversation: id,
                peer,
                request,
            }),
        }
    }

    fn let_in(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let Ok(peer) = peer_of(&stream) else {
                continue;
            };
            let Ok(mut guest) = Conversation::new(stream, peer) else {
                continue;
            };
            let of_user = self
                .conversations
                .values()
                .filter(|c| c.peer.uid == peer.uid);
            if of_user.count() >= MOST_OF_USER || self.conversations.len() >= MOST {
                let why = format!(
                    "the daemon speaks with {MOST_OF_USER} clients of one user and {MOST} in all; \
                     try again later"
                );
                guest.answer(&Answer::Error(why));
                continue;
            }
            self.conversations.insert(self.next, guest);
            self.next += 1;
        }
        let there: Vec<u32> = self.conversations.values().map(|c| c.peer.uid).collect();
        let idle = Duration::from_secs(1);
        self.budgets
            .retain(|uid, budget| there.contains(uid) || budget.at.elapsed() < idle);
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // Whoever removed it already has done what was to be done.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Makes a socket in the place of any file that was there.
fn listen(path: &Path, for_all: bool) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    let mode = if for_all { 0o666 } else { 0o600 };
    std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests;
