//! The daemon's side of the control socket.

#[cfg(test)]
mod tests;

use super::{ControlServerError, SocketPlace};
use crate::protocol::{
    Acceptor, DaemonAnswer, DaemonRequest, Language, LineConnection, Peer, ReadError,
};
use nix::sys::resource::{Resource, getrlimit};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Most connections at a time.
const MAX_CONNECTIONS: usize = 64;
/// Number of these that only root and the daemon's own user get.
const RESERVED: usize = 16;
/// Most connections of one user at a time.
const MAX_OF_USER: usize = 16;
/// Descriptors of this process per connection: the others are for its work.
const DESCRIPTORS_PER_CONNECTION: u64 = 8;
/// Most peers at a time that were sent their last answer and have not left.
const MAX_DISMISSED: usize = 16;
/// Requests that one user may make per second; the same number may also come at once.
const REQUESTS_PER_S: u32 = 200;
/// Time that a request may take; one that takes longer counts as several. So the requests of one
/// user, whatever they are, take at most a twentieth of a CPU.
const TIME_PER_REQUEST: Duration = Duration::from_micros(250);
/// Most requests of one connection that are served at a time: a tenth of a second passes at most
/// until the next time, so that the budget of the user is the narrower limit.
const MAX_AT_A_TIME: usize = 32;
/// Time after which no further request is served at a time; answers for large runs take
/// milliseconds each.
const MAX_TIME: Duration = Duration::from_millis(10);

/// A control socket with its connections. Dropping it removes the socket.
#[derive(Debug)]
pub struct ControlServer {
    place: SocketPlace,
    acceptor: Acceptor,
    limits: ConnectionLimits,
    connections: BTreeMap<u64, ClientConnection>,
    next: u64,
    /// Connection that is served first the next time, so that none has to wait for others.
    first: u64,
    budgets: BTreeMap<u32, RequestBudget>,
}

/// Most connections at a time.
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
    /// The usual numbers, or fewer for a process that may have so few descriptors that connections
    /// would take the ones that it works with.
    fn for_descriptors(descriptors: u64) -> Self {
        let room = descriptors / DESCRIPTORS_PER_CONNECTION;
        let all =
            usize::try_from(room).map_or(MAX_CONNECTIONS, |room| room.clamp(4, MAX_CONNECTIONS));
        Self {
            all,
            others: all - RESERVED.min(all / 4),
            of_user: MAX_OF_USER.min(all / 4),
        }
    }
}

/// Requests that a user may still make at once, refilled over time.
#[derive(Clone, Copy, Debug)]
struct RequestBudget {
    requests: f64,
    at: Instant,
}

impl RequestBudget {
    fn full(now: Instant) -> Self {
        Self {
            requests: f64::from(REQUESTS_PER_S),
            at: now,
        }
    }

    /// Takes one request out of the budget; returns false if there is none left.
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
    /// Listens at a place; with `for_all`, every user of the host may connect. A socket that a
    /// killed daemon has left is replaced.
    ///
    /// # Errors
    /// [`ControlServerError::Taken`] if a daemon listens already, [`ControlServerError::Listen`] if
    /// the socket cannot be made.
    pub fn open(place: SocketPlace, for_all: bool) -> Result<Self, ControlServerError> {
        let acceptor = place.listen(for_all)?;
        let limit = getrlimit(Resource::RLIMIT_NOFILE);
        let descriptors = limit.map_or(u64::MAX, |(soft, _)| soft);
        Ok(Self {
            place,
            acceptor,
            limits: ConnectionLimits::for_descriptors(descriptors),
            connections: BTreeMap::new(),
            next: 0,
            first: 0,
            budgets: BTreeMap::new(),
        })
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// Returns true while a client is connected. The server is to be served then even if no
    /// descriptor is ready, because deadlines pass.
    pub fn has_connections(&self) -> bool {
        !self.connections.is_empty()
    }

    /// Descriptors to poll for reading; then [`ControlServer::serve_clients`].
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let peers = self.connections.values().filter(|c| c.is_open());
        self.acceptor.fd().into_iter().chain(peers.map(AsFd::as_fd))
    }

    /// Accepts new clients and serves their requests, as many as are allowed now. `handle` is given
    /// the connection's number and returns the answer, or `None` for a request that it has accepted
    /// and that [`ControlServer::answer`] answers later. Does not wait.
    pub fn serve_clients(
        &mut self,
        now: Instant,
        mut handle: impl FnMut(u64, Peer, DaemonRequest) -> Option<Result<Value, String>>,
    ) {
        let begun = Instant::now();
        self.accept_clients(now);
        self.connections.retain(|_, c| c.transfer_pending(now));
        self.close_dismissed();
        let ids = self.connections.range(self.first..);
        let ids = ids.chain(self.connections.range(..self.first));
        let mut ids: Vec<u64> = ids.map(|(id, _)| *id).collect();
        // By turns, so that one that makes many requests does not keep the others waiting.
        for _ in 0..MAX_AT_A_TIME {
            ids.retain(|&id| self.serve_next_request(id, now, &mut handle));
            if ids.is_empty() || begun.elapsed() > MAX_TIME {
                break;
            }
        }
        self.first = ids.first().copied().unwrap_or(0);
    }

    /// Answers the request that was accepted from a connection.
    pub fn answer(&mut self, connection: u64, result: Result<Value, String>) {
        let client = self.connections.get_mut(&connection);
        let Some(client) = client.filter(|client| !client.is_dismissed()) else {
            return;
        };
        let now = Instant::now();
        let (peer, took) = (client.peer, client.wait_time(now));
        client.answer(&DaemonAnswer::from(result), now);
        self.charge(peer, took);
    }

    /// Serves the next line of a connection; returns true if it was answered, so that another may
    /// be served.
    fn serve_next_request(
        &mut self,
        id: u64,
        now: Instant,
        handle: &mut impl FnMut(u64, Peer, DaemonRequest) -> Option<Result<Value, String>>,
    ) -> bool {
        let Some(client) = self.connections.get_mut(&id) else {
            return false;
        };
        let peer = client.peer;
        let fresh = RequestBudget::full(now);
        let budget = self.budgets.entry(peer.uid).or_insert(fresh);
        if !client.has_next() || !budget.take_request(now) {
            return false;
        }
        let begun = Instant::now();
        let Some(request) = client.next_request(begun) else {
            return true;
        };
        let Some(result) = handle(id, peer, request) else {
            return false;
        };
        client.answer(&DaemonAnswer::from(result), now);
        self.charge(peer, begun.elapsed());
        true
    }

    /// Takes the time of a request out of its user's budget. Root and the daemon's user decide
    /// themselves how many requests they make.
    fn charge(&mut self, peer: Peer, took: Duration) {
        let budget = self.budgets.get_mut(&peer.uid);
        if let Some(budget) = budget.filter(|_| !peer.is_master()) {
            budget.charge(took);
        }
    }

    fn accept_clients(&mut self, now: Instant) {
        for stream in self.acceptor.accept_waiting(now) {
            let Ok(peer) = Peer::from_stream(&stream) else {
                continue;
            };
            let Ok(mut client) = ClientConnection::new(stream, peer, now) else {
                continue;
            };
            if let Some(why) = self.refusal(peer) {
                client.dismiss(why, now);
            }
            self.connections.insert(self.next, client);
            self.next += 1;
        }
        let there: Vec<u32> = self.connections.values().map(|c| c.peer.uid).collect();
        // A user whose budget is dropped before it is full would begin anew with all requests.
        self.budgets
            .retain(|uid, budget| there.contains(uid) || !budget.is_full(now));
    }

    /// Reason for which there is no place for a client, if any.
    fn refusal(&self, peer: Peer) -> Option<String> {
        let ConnectionLimits {
            all,
            others,
            of_user,
        } = self.limits;
        let open = self.connections.values().filter(|c| !c.is_dismissed());
        let users: Vec<Peer> = open.map(|c| c.peer).collect();
        let of_others = users.iter().filter(|user| !user.is_master()).count();
        let own = users.iter().filter(|user| user.uid == peer.uid).count();
        let is_full = users.len() >= all || (!peer.is_master() && of_others >= others);
        let uid = peer.uid;
        if own >= of_user {
            return Some(format!(
                "user {uid} has {of_user} connections to the daemon, the most that it allows one \
                 user; close one, or wait until it was silent for {} s",
                MAX_SILENCE.as_secs()
            ));
        }
        is_full.then(|| {
            format!("the daemon has {all} connections, the most that it allows; try again later")
        })
    }

    /// Closes the oldest of the connections whose peers were sent their last answer, if there are
    /// too many of them: each keeps a descriptor.
    fn close_dismissed(&mut self) {
        let dismissed = self.connections.iter().filter(|(_, c)| c.is_dismissed());
        let dismissed: Vec<u64> = dismissed.map(|(id, _)| *id).collect();
        let surplus = dismissed.len().saturating_sub(MAX_DISMISSED);
        for id in &dismissed[..surplus] {
            self.connections.remove(id);
        }
    }
}

impl Drop for ControlServer {
    fn drop(&mut self) {
        self.place.remove();
    }
}

/// Longest time that a peer may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time without a complete request: a silent peer would keep a place that others need.
pub(in crate::control) const MAX_SILENCE: Duration = Duration::from_secs(30);
/// Most requests that are read ahead of their turn, apart from those in the piece that was read
/// last. Further ones stay with the kernel, so that a peer that sends more has to wait.
const MAX_WAITING: usize = 64;
/// Longest time that a peer may take to leave after its last answer.
const FAREWELL: Duration = Duration::from_secs(1);

/// A connected client.
#[derive(Debug)]
pub(super) struct ClientConnection {
    connection: LineConnection,
    pub(super) peer: Peer,
    /// Time of the last complete line, request that was handed on, or answer.
    active: Instant,
    /// True while a request was handed on and not answered.
    awaits_answer: bool,
    /// True once the peer sends nothing more.
    is_gone: bool,
    /// Time of the last answer that the peer gets; `None` while it may make requests.
    dismissed: Option<Instant>,
}

impl ClientConnection {
    pub(super) fn new(stream: UnixStream, peer: Peer, now: Instant) -> io::Result<Self> {
        Ok(Self {
            connection: LineConnection::from_accepted(stream, Language::Control)?,
            peer,
            active: now,
            awaits_answer: false,
            is_gone: false,
            dismissed: None,
        })
    }

    /// Receives and sends as much as is possible now; returns false if the connection is over.
    pub(super) fn transfer_pending(&mut self, now: Instant) -> bool {
        if let Some(since) = self.dismissed {
            self.flush(now);
            let has_left = self.connection.drop_input();
            return !has_left && now.saturating_duration_since(since) <= FAREWELL;
        }
        self.read_lines(now);
        self.flush(now);
        let is_quiet = !self.awaits_answer
            && !self.connection.has_unsent()
            && self.connection.waiting_lines() == 0;
        if is_quiet && !self.is_gone && now.saturating_duration_since(self.active) > MAX_SILENCE {
            let seconds = MAX_SILENCE.as_secs();
            let why = format!("the conversation was silent for {seconds} s; connect again");
            self.dismiss(why, now);
            return true;
        }
        let is_over = self.connection.is_blocked_for(PATIENCE, now) || (self.is_gone && is_quiet);
        !is_over
    }

    fn may_read(&self) -> bool {
        let has_room = self.connection.waiting_lines() < MAX_WAITING;
        !self.is_gone && self.dismissed.is_none() && has_room
    }

    /// Returns true if a request may be read now. Otherwise the descriptor is not to be polled: it
    /// would stay readable.
    pub(super) fn is_open(&self) -> bool {
        !self.awaits_answer && self.may_read()
    }

    /// Sends the peer a last answer, and nothing after it. The connection stays open for a moment:
    /// a peer that is still writing would otherwise meet a broken pipe and not look for the reason.
    pub(super) fn dismiss(&mut self, why: String, now: Instant) {
        self.connection.drop_lines();
        self.answer(&DaemonAnswer::Error(why), now);
        self.dismissed = Some(now);
        self.flush(now);
    }

    /// Returns true if the peer was sent its last answer.
    pub(super) fn is_dismissed(&self) -> bool {
        self.dismissed.is_some()
    }

    /// Returns true if a line waits and none is being answered.
    pub(super) fn has_next(&self) -> bool {
        !self.awaits_answer && !self.connection.has_unsent() && self.connection.waiting_lines() > 0
    }

    /// The request in the next line; a faulty line is answered instead.
    pub(super) fn next_request(&mut self, now: Instant) -> Option<DaemonRequest> {
        if !self.has_next() {
            return None;
        }
        let line = self.connection.take_line()?;
        match DaemonRequest::parse(&line) {
            Ok(request) => {
                self.awaits_answer = true;
                self.active = now;
                Some(request)
            }
            Err(error) => {
                self.answer(&DaemonAnswer::Error(error.to_string()), now);
                None
            }
        }
    }

    /// Time for which the request that was handed on has waited.
    pub(super) fn wait_time(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.active)
    }

    /// Answers the request that was handed on.
    pub(super) fn answer(&mut self, answer: &DaemonAnswer, now: Instant) {
        self.awaits_answer = false;
        self.active = now;
        let sent = self.connection.queue_line(answer.to_line(), now);
        self.is_gone |= sent.is_err();
    }

    fn read_lines(&mut self, now: Instant) {
        while self.may_read() {
            match self.connection.read_piece() {
                Ok(0) => {}
                Ok(_) => self.active = now,
                Err(error) if error.is_timeout() => return,
                // The beginning of the next line cannot be found any more.
                Err(ReadError::Line(error)) => self.dismiss(error.to_string(), now),
                Err(ReadError::Closed | ReadError::Io(_)) => self.is_gone = true,
            }
        }
    }

    fn flush(&mut self, now: Instant) {
        self.is_gone |= self.connection.flush(now).is_err();
        if self.dismissed.is_some() && !self.connection.has_unsent() {
            self.connection.shut_down(Shutdown::Write);
        }
    }
}

impl AsFd for ClientConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }
}
