//! The daemon's side of the control socket.

use super::client_connection::{ClientConnection, Peer, SILENCE, peer_credentials};
use super::message::{DaemonAnswer, DaemonRequest};
use super::place::SocketPlace;
use crate::acceptor::Acceptor;
use nix::fcntl::{OFlag, open};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::Mode;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Most conversations at a time.
const MOST: usize = 64;
/// Number of these that only root and the daemon's own user get.
const RESERVED: usize = 16;
/// Most conversations of one user at a time.
const MOST_OF_USER: usize = 16;
/// Descriptors of this process per conversation: the others are for its work.
const DESCRIPTORS_PER_CONVERSATION: u64 = 8;
/// Most peers at a time that were sent their last answer and have not left.
const MOST_DISMISSED: usize = 16;
/// Requests that one user may make per second; the same number may also come at once.
const REQUESTS_PER_S: u32 = 200;
/// Time that a request may take; one that takes longer counts as several. So the requests of one
/// user, whatever they ask, take at most a twentieth of a CPU.
const TIME_PER_REQUEST: Duration = Duration::from_micros(250);
/// Most requests of one conversation that are heard at a time: a tenth of a second passes at most
/// until the next time, so that the budget of the user is the narrower limit.
const MOST_AT_A_TIME: usize = 32;
/// Time after which no further request is heard at a time; answers for large runs take
/// milliseconds each.
const MOST_TIME: Duration = Duration::from_millis(10);

/// A request that the run is to carry out; [`ControlServer::answer`] it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    /// The conversation.
    pub conversation: u64,
    /// The client that asks.
    pub peer: Peer,
    /// The request.
    pub request: DaemonRequest,
}

/// A function that answers requests which change nothing, and refuses those which are wrong on
/// their face; none where the run is to carry the request out.
pub type RequestHandler = Box<dyn FnMut(Peer, &DaemonRequest) -> Option<Result<Value, String>>>;

/// Reason for which there is no control socket.
#[derive(Debug, Error)]
pub enum ControlServerError {
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
pub struct ControlServer {
    place: SocketPlace,
    acceptor: Acceptor,
    clerk: RequestHandler,
    places: ConnectionLimits,
    conversations: BTreeMap<u64, ClientConnection>,
    next: u64,
    /// Conversation that is heard first the next time, so that none has to wait for others.
    first: u64,
    budgets: BTreeMap<u32, RequestBudget>,
}

/// Numbers of conversations at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConnectionLimits {
    /// For all users together.
    all: usize,
    /// For users other than root and the daemon's own, together.
    others: usize,
    /// For each user.
    of_user: usize,
}

impl ConnectionLimits {
    /// The usual numbers, or fewer for a process that may have so few descriptors that
    /// conversations would take the ones that it works with.
    fn for_descriptors(descriptors: u64) -> Self {
        let room = descriptors / DESCRIPTORS_PER_CONVERSATION;
        let all = usize::try_from(room).map_or(MOST, |room| room.clamp(4, MOST));
        Self {
            all,
            others: all - RESERVED.min(all / 4),
            of_user: MOST_OF_USER.min(all / 4),
        }
    }
}

/// Outcome of hearing one conversation.
enum RequestOutcome {
    /// A line was answered, and the next may be heard.
    Answered,
    /// A request is to be carried out.
    Asked(PendingRequest),
    /// Nothing is to be heard now.
    Nothing,
}

/// Requests that a user may still make at once, refilled over time.
#[derive(Clone, Copy, Debug)]
struct RequestBudget {
    requests: f64,
    at: Instant,
}

impl RequestBudget {
    /// Takes one request out of the budget; returns false where there is none left.
    fn take_request(&mut self, now: Instant) -> bool {
        let most = f64::from(REQUESTS_PER_S);
        let earned = (now - self.at).as_secs_f64() * most;
        self.requests = (self.requests + earned).min(most);
        self.at = now;
        let within = self.requests >= 1.0;
        self.requests -= f64::from(u8::from(within));
        within
    }

    /// Returns true if nothing more can be added.
    fn is_full(self, now: Instant) -> bool {
        let most = f64::from(REQUESTS_PER_S);
        let earned = now.saturating_duration_since(self.at).as_secs_f64() * most;
        self.requests + earned >= most
    }

    /// Takes the time of a request that was taken before out of the budget as well.
    fn charge(&mut self, took: Duration) {
        let requests = took.as_secs_f64() / TIME_PER_REQUEST.as_secs_f64();
        self.requests -= (requests - 1.0).max(0.0);
    }
}

impl ControlServer {
    /// Listens at a place; with `for_all`, every user of the host may speak there. A socket that a
    /// killed daemon has left is replaced.
    ///
    /// # Errors
    /// [`ControlServerError::Taken`] if a daemon listens already, [`ControlServerError::Listen`] if the socket cannot
    /// be made.
    pub fn open(
        place: SocketPlace,
        for_all: bool,
        clerk: RequestHandler,
    ) -> Result<Self, ControlServerError> {
        let own = place.own_path();
        let path = place.path().to_owned();
        let listening = match UnixStream::connect(&own) {
            Ok(stream) => {
                let pid = peer_credentials(&stream).map_or(0, |peer| peer.pid);
                return Err(ControlServerError::Taken { pid, path });
            }
            Err(error) => match (std::fs::symlink_metadata(&own), error.kind()) {
                (Err(missing), _) if missing.kind() == io::ErrorKind::NotFound => {
                    listen(&own, for_all)
                }
                // A link counts as what it is, wherever it leads.
                (Ok(there), _) if !there.file_type().is_socket() => Err(no_socket()),
                // No process listens at it any more.
                (Ok(_), io::ErrorKind::ConnectionRefused) => {
                    remove_socket(&own).and_then(|()| listen(&own, for_all))
                }
                _ => Err(error),
            },
        };
        let acceptor = listening.map_err(|source| ControlServerError::Listen { path, source })?;
        let limit = getrlimit(Resource::RLIMIT_NOFILE);
        Ok(Self {
            place,
            acceptor,
            clerk,
            places: ConnectionLimits::for_descriptors(limit.map_or(u64::MAX, |(soft, _)| soft)),
            conversations: BTreeMap::new(),
            next: 0,
            first: 0,
            budgets: BTreeMap::new(),
        })
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Returns true while somebody is in a conversation, and so to be attended even if nothing comes.
    pub(crate) fn has_connections(&self) -> bool {
        !self.conversations.is_empty()
    }

    /// Descriptors to poll for reading; then [`ControlServer::serve_clients`].
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let peers = self.conversations.values().filter(|c| c.is_open());
        self.acceptor.fd().into_iter().chain(peers.map(AsFd::as_fd))
    }

    /// Accepts new clients, answers requests that the clerk can answer, and returns those that are
    /// to be carried out. Does not wait.
    pub fn serve_clients(&mut self, now: Instant) -> Vec<PendingRequest> {
        let begun = Instant::now();
        self.accept_clients(now);
        self.conversations.retain(|_, c| c.transfer_pending(now));
        self.close_dismissed();
        let mut asked = Vec::new();
        let ids = self.conversations.range(self.first..);
        let ids = ids.chain(self.conversations.range(..self.first));
        let mut ids: Vec<u64> = ids.map(|(id, _)| *id).collect();
        // By turns, so that one that asks for much does not keep the others waiting.
        for _ in 0..MOST_AT_A_TIME {
            ids.retain(|&id| match self.serve_next_request(id, now) {
                RequestOutcome::Answered => true,
                RequestOutcome::Nothing => false,
                RequestOutcome::Asked(request) => {
                    asked.push(request);
                    false
                }
            });
            if ids.is_empty() || begun.elapsed() > MOST_TIME {
                break;
            }
        }
        self.first = ids.first().copied().unwrap_or(0);
        asked
    }

    /// Answers a request that was [asked](PendingRequest).
    pub fn answer(&mut self, conversation: u64, result: Result<Value, String>) {
        let guest = self.conversations.get_mut(&conversation);
        let Some(guest) = guest.filter(|guest| !guest.is_dismissed()) else {
            return;
        };
        let now = Instant::now();
        let (peer, took) = (guest.peer, guest.wait_time(now));
        guest.answer(&DaemonAnswer::from(result), now);
        self.charge(peer, took);
    }

    fn serve_next_request(&mut self, id: u64, now: Instant) -> RequestOutcome {
        let Some(conversation) = self.conversations.get_mut(&id) else {
            return RequestOutcome::Nothing;
        };
        let peer = conversation.peer;
        let fresh = RequestBudget {
            requests: f64::from(REQUESTS_PER_S),
            at: now,
        };
        let budget = self.budgets.entry(peer.uid).or_insert(fresh);
        if !conversation.has_next() || !budget.take_request(now) {
            return RequestOutcome::Nothing;
        }
        let begun = Instant::now();
        let Some(request) = conversation.next(begun) else {
            return RequestOutcome::Answered;
        };
        match (self.clerk)(peer, &request) {
            Some(result) => {
                conversation.answer(&DaemonAnswer::from(result), now);
                self.charge(peer, begun.elapsed());
                RequestOutcome::Answered
            }
            None => RequestOutcome::Asked(PendingRequest {
                conversation: id,
                peer,
                request,
            }),
        }
    }

    /// Takes the time of a request out of its user's budget. Root and the daemon's user decide
    /// themselves how much they ask for.
    fn charge(&mut self, peer: Peer, took: Duration) {
        if let Some(budget) = self
            .budgets
            .get_mut(&peer.uid)
            .filter(|_| !peer.is_master())
        {
            budget.charge(took);
        }
    }

    fn accept_clients(&mut self, now: Instant) {
        for stream in self.acceptor.accept_waiting(now) {
            let Ok(peer) = peer_credentials(&stream) else {
                continue;
            };
            let Ok(mut guest) = ClientConnection::new(stream, peer, now) else {
                continue;
            };
            if let Some(why) = self.refusal(peer) {
                guest.dismiss(why, now);
            }
            self.conversations.insert(self.next, guest);
            self.next += 1;
        }
        let there: Vec<u32> = self.conversations.values().map(|c| c.peer.uid).collect();
        // One that is forgotten would begin anew with all requests.
        self.budgets
            .retain(|uid, budget| there.contains(uid) || !budget.is_full(now));
    }

    /// Reason for which there is no place for a client, if any.
    fn refusal(&self, peer: Peer) -> Option<String> {
        let ConnectionLimits {
            all,
            others,
            of_user,
        } = self.places;
        let open = self.conversations.values().filter(|c| !c.is_dismissed());
        let users: Vec<Peer> = open.map(|c| c.peer).collect();
        let of_others = users.iter().filter(|user| !user.is_master()).count();
        let own = users.iter().filter(|user| user.uid == peer.uid).count();
        let is_full = users.len() >= all || (!peer.is_master() && of_others >= others);
        let uid = peer.uid;
        if own >= of_user {
            return Some(format!(
                "user {uid} has {of_user} connections to the daemon, the most that it allows one \
                 user; close one, or wait until it was silent for {} s",
                SILENCE.as_secs()
            ));
        }
        is_full.then(|| {
            format!("the daemon has {all} connections, the most that it allows; try again later")
        })
    }

    /// Closes the oldest of the connections whose peers were sent their last answer, if there are
    /// too many of them.
    fn close_dismissed(&mut self) {
        let dismissed = self.conversations.iter().filter(|(_, c)| c.is_dismissed());
        let dismissed: Vec<u64> = dismissed.map(|(id, _)| *id).collect();
        let surplus = dismissed.len().saturating_sub(MOST_DISMISSED);
        for id in &dismissed[..surplus] {
            self.conversations.remove(id);
        }
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        // It fails if it was removed or replaced already; then nothing is left to do.
        let _ = remove_socket(&self.place.own_path());
    }
}

/// Removes a socket, and no other file: a path that was mistyped must not cost a file.
fn remove_socket(path: &Path) -> io::Result<()> {
    let there = std::fs::symlink_metadata(path)?;
    if !there.file_type().is_socket() {
        return Err(no_socket());
    }
    std::fs::remove_file(path)
}

fn no_socket() -> io::Error {
    io::Error::other("a file that is not a socket is there; name another path")
}

fn listen(path: &Path, for_all: bool) -> io::Result<Acceptor> {
    let listener = UnixListener::bind(path)?;
    let mode = if for_all { 0o666 } else { 0o600 };
    set_mode(path, mode)?;
    Acceptor::new(listener)
}

/// Sets the mode of a socket, and of no file that a link in its place names.
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let socket = File::from(open(path, flags, Mode::empty())?);
    if !socket.metadata()?.file_type().is_socket() {
        return Err(io::Error::other("another file took the socket's place"));
    }
    // fchmod(2) does not take such a descriptor; its name does not change under it.
    let name = format!("/proc/self/fd/{}", socket.as_raw_fd());
    std::fs::set_permissions(name, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests;
