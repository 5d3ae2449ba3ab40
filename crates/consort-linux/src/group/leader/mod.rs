//! The leader's side of a group: its socket, its members, and the terms.

#[cfg(test)]
mod tests;

use super::lock::GroupLock;
use super::{GroupError, GroupName};
use crate::protocol::{
    Acceptor, Demands, GroupTerms, JoiningCommand, Language, LeaderMessage, LineConnection,
    LineError, MemberMessage, Peer, ReadError,
};
use nix::unistd::Uid;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Most programs of a group, the leader's own included; so there is one connection fewer.
const MAX_PROGRAMS: usize = 64;
/// Longest wait for each message of a peer until its program is managed: a silent peer would keep a
/// place that others need. A member that was only slow notices and comes again.
const PATIENCE: Duration = Duration::from_secs(10);

/// A run that has the lock of a group and does not lead it yet.
#[derive(Debug)]
pub struct LeaderCandidate {
    lock: GroupLock,
}

/// The leader of a group. Dropping it lets another run lead: do so after every mask is restored.
#[derive(Debug)]
pub struct Leader {
    terms: GroupTerms,
    acceptor: Acceptor,
    connections: BTreeMap<u64, MemberConnection>,
    next: u64,
    /// The connection that waits for open terms to be settled, and its demands.
    proposal: Option<(u64, Demands)>,
    most_programs: usize,
    // Last, so that the socket is closed before the lock is free.
    lock: GroupLock,
}

/// A task that a member gives to the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderTask {
    /// Manage a member's command; [`Leader::answer`] it.
    Manage {
        /// Number of the connection.
        connection: u64,
        /// Process of the member, which must be the command's parent.
        peer: u32,
        /// The command.
        program: JoiningCommand,
    },
    /// Resume the command of this process if it is paused, because it was sent a signal.
    Wake(u32),
    /// Stop managing the command of this process: it has ended, or its member has gone.
    Release(u32),
}

/// Progress of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JoinStage {
    /// The peer has not sent anything yet.
    New,
    /// The peer demanded open terms, and waits until they are settled.
    Proposes,
    /// The peer was sent the terms, and may start its command.
    Welcomed,
    /// The peer's command is managed; its process id.
    Managed(u32),
}

/// A connected peer.
#[derive(Debug)]
struct MemberConnection {
    connection: LineConnection,
    /// The process at the other end.
    peer: u32,
    stage: JoinStage,
    /// Time at which the stage began.
    since: Instant,
}

/// Reason for which a connection ends.
#[derive(Debug, thiserror::Error)]
enum DisconnectReason {
    #[error("the connection has ended")]
    Gone,
    #[error(transparent)]
    Line(#[from] LineError),
    /// The peer sent a message at the wrong time.
    #[error("say hello once, then program once, then wake as often as needed")]
    OutOfTurn,
}

impl MemberConnection {
    fn new(stream: UnixStream, peer: u32, now: Instant) -> io::Result<Self> {
        Ok(Self {
            connection: LineConnection::from_accepted(stream, Language::Groups)?,
            peer,
            stage: JoinStage::New,
            since: now,
        })
    }

    fn enter_stage(&mut self, stage: JoinStage, now: Instant) {
        (self.stage, self.since) = (stage, now);
    }

    /// Process id of the peer's command, once it is managed.
    fn program(&self) -> Option<u32> {
        match self.stage {
            JoinStage::Managed(pid) => Some(pid),
            JoinStage::New | JoinStage::Proposes | JoinStage::Welcomed => None,
        }
    }

    /// The peer's message since the last call, if there is one; at most one per call, so that no
    /// peer takes up the leader's time. An error ends the connection.
    fn read_message(&mut self) -> Result<Option<MemberMessage>, DisconnectReason> {
        match self.connection.read_piece() {
            Ok(_) => {}
            Err(error) if error.is_timeout() => return Ok(None),
            Err(ReadError::Line(error)) => return Err(error.into()),
            Err(ReadError::Closed | ReadError::Io(_)) => return Err(DisconnectReason::Gone),
        }
        let first = self.connection.take_line();
        let has_more = self.connection.waiting_lines() > 0;
        // However often a member sends `wake`, its command is resumed once.
        self.connection.drop_lines();
        // Before that, a peer has nothing more to send until its last message was answered.
        if has_more && self.program().is_none() {
            return Err(DisconnectReason::OutOfTurn);
        }
        let Some(line) = first else {
            return Ok(None);
        };
        let message = MemberMessage::parse(&line)?;
        match (&message, self.stage) {
            (MemberMessage::Hello(_), JoinStage::New)
            | (MemberMessage::Program(_), JoinStage::Welcomed)
            | (MemberMessage::Wake, JoinStage::Managed(_)) => Ok(Some(message)),
            _ => Err(DisconnectReason::OutOfTurn),
        }
    }

    /// Sends the peer a message; returns false if it does not take it at once. A peer reads what it
    /// is sent, so there is room for it unless the peer is hostile.
    fn send(&mut self, message: &LeaderMessage) -> bool {
        let line = message.to_line();
        line.is_ok_and(|line| self.connection.write_line(&line).is_ok())
    }
}

impl LeaderCandidate {
    pub(super) fn new(lock: GroupLock) -> Self {
        Self { lock }
    }

    /// Begins to lead, on these terms.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn lead(self, terms: GroupTerms) -> Result<Leader, GroupError> {
        let path = self.lock.socket();
        let acceptor = UnixListener::bind(&path).and_then(Acceptor::new);
        let acceptor = acceptor.map_err(|source| GroupError::File {
            action: "listen at",
            path,
            source,
        })?;
        Ok(Leader {
            terms,
            acceptor,
            connections: BTreeMap::new(),
            next: 0,
            proposal: None,
            most_programs: 1,
            lock: self.lock,
        })
    }
}

impl Leader {
    /// Name of the group.
    pub fn group(&self) -> &GroupName {
        self.lock.group()
    }

    /// The terms that hold in the group.
    pub fn terms(&self) -> &GroupTerms {
        &self.terms
    }

    /// Most programs that the group had at a time, the leader's own included.
    pub fn most_programs(&self) -> usize {
        self.most_programs
    }

    /// Returns true while a member is connected. The group is to be served then even if no
    /// descriptor is ready, because deadlines pass.
    pub fn has_connections(&self) -> bool {
        !self.connections.is_empty()
    }

    /// Descriptors to poll for reading; then [`Leader::serve_members`].
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let peers = self.connections.values().map(|c| c.connection.as_fd());
        self.acceptor.fd().into_iter().chain(peers)
    }

    /// Accepts new members, reads from all of them, and returns the tasks that follow. Does not
    /// wait.
    pub fn serve_members(&mut self, now: Instant) -> Vec<LeaderTask> {
        self.accept_members(now);
        let ids: Vec<u64> = self.connections.keys().copied().collect();
        ids.into_iter()
            .filter_map(|id| self.serve_member(id, now))
            .collect()
    }

    /// Answers a [`LeaderTask::Manage`].
    pub fn answer(&mut self, connection: u64, program: u32, answer: &LeaderMessage) {
        let Some(member) = self.connections.get_mut(&connection) else {
            return;
        };
        if member.send(answer) && *answer == LeaderMessage::Taken {
            member.stage = JoinStage::Managed(program);
            let members = self.connections.values();
            let programs = members.filter_map(MemberConnection::program).count();
            self.most_programs = self.most_programs.max(1 + programs);
        } else {
            self.connections.remove(&connection);
        }
    }

    /// Demands of a member that concern open terms. [`Leader::settle_terms`] soon, because no
    /// new member is served before.
    pub fn proposal(&self) -> Option<&Demands> {
        self.proposal.as_ref().map(|(_, demands)| demands)
    }

    /// Answers a [proposal](Leader::proposal): with terms that hold for all from now on, or
    /// with the reason for which they cannot.
    pub fn settle_terms(&mut self, settled: Result<GroupTerms, String>, now: Instant) {
        let Some((id, _)) = self.proposal.take() else {
            return;
        };
        match settled {
            Ok(terms) => {
                self.terms = terms;
                self.send_terms();
                self.welcome(id, now);
            }
            Err(why) => self.refuse(id, why),
        }
    }

    /// Sends all members the terms that hold from now on.
    fn send_terms(&mut self) {
        let terms = LeaderMessage::Terms(self.terms.clone());
        for member in self.connections.values_mut() {
            // Others get the terms with their welcome.
            let is_member = matches!(member.stage, JoinStage::Welcomed | JoinStage::Managed(_));
            if is_member && !member.send(&terms) {
                // Reading from it then ends the connection.
                member.connection.shut_down(Shutdown::Both);
            }
        }
    }

    fn welcome(&mut self, id: u64, now: Instant) {
        let welcome = LeaderMessage::Welcome(self.terms.clone());
        let Some(member) = self.connections.get_mut(&id) else {
            return;
        };
        member.enter_stage(JoinStage::Welcomed, now);
        if !member.send(&welcome) {
            self.connections.remove(&id);
        }
    }

    fn refuse(&mut self, id: u64, why: String) {
        if let Some(mut peer) = self.connections.remove(&id) {
            peer.send(&LeaderMessage::Refused(why));
        }
    }

    fn accept_members(&mut self, now: Instant) {
        for stream in self.acceptor.accept_waiting(now) {
            let peer = Peer::from_stream(&stream);
            let refusal = self.refusal(&peer);
            let pid = peer.map_or(0, |peer| peer.pid);
            let Ok(mut member) = MemberConnection::new(stream, pid, now) else {
                continue;
            };
            match refusal {
                Some(why) => drop(member.send(&LeaderMessage::Refused(why))),
                None => {
                    self.connections.insert(self.next, member);
                    self.next += 1;
                }
            }
        }
    }

    /// Reason for which a peer is not accepted, if any.
    fn refusal(&self, peer: &io::Result<Peer>) -> Option<String> {
        let own = Uid::effective().as_raw();
        match peer {
            Err(error) => Some(format!("the kernel does not show who calls: {error}")),
            Ok(Peer { uid, .. }) if *uid != own => Some(format!(
                "it is a group of user {own}, and user {uid} is calling"
            )),
            Ok(_) if self.connections.len() >= MAX_PROGRAMS - 1 => Some(format!(
                "it has {MAX_PROGRAMS} programs, and no leader takes more; use another group"
            )),
            Ok(_) => None,
        }
    }

    fn serve_member(&mut self, id: u64, now: Instant) -> Option<LeaderTask> {
        let member = self.connections.get_mut(&id)?;
        let is_its_turn = matches!(member.stage, JoinStage::New | JoinStage::Welcomed);
        if is_its_turn && now.saturating_duration_since(member.since) > PATIENCE {
            self.connections.remove(&id);
            return None;
        }
        if member.stage == JoinStage::New && self.proposal.is_some() {
            // The terms that it could join on are not settled yet.
            return None;
        }
        let peer = member.peer;
        match member.read_message() {
            Ok(None) => None,
            Ok(Some(MemberMessage::Hello(demands))) => {
                match judge_demands(&self.terms, &demands) {
                    DemandsVerdict::Welcome => self.welcome(id, now),
                    DemandsVerdict::Refused(why) => self.refuse(id, why),
                    DemandsVerdict::Settles => {
                        member.enter_stage(JoinStage::Proposes, now);
                        self.proposal = Some((id, demands));
                    }
                }
                None
            }
            Ok(Some(MemberMessage::Program(program))) => Some(LeaderTask::Manage {
                connection: id,
                peer,
                program,
            }),
            Ok(Some(MemberMessage::Wake)) => member.program().map(LeaderTask::Wake),
            Err(reason) => self.disconnect(id, &reason),
        }
    }

    fn disconnect(&mut self, id: u64, reason: &DisconnectReason) -> Option<LeaderTask> {
        let mut member = self.connections.remove(&id)?;
        self.proposal = self.proposal.take().filter(|(from, _)| *from != id);
        if !matches!(reason, DisconnectReason::Gone) {
            // A peer that was not understood may still read the reason.
            member.send(&LeaderMessage::Refused(reason.to_string()));
        }
        member.program().map(LeaderTask::Release)
    }
}

/// Verdict on the demands of a member that sends `hello`.
#[derive(Debug, PartialEq)]
pub(super) enum DemandsVerdict {
    /// The member's demands are met by the terms that hold.
    Welcome,
    /// The member demands terms that are open, which are to be settled.
    Settles,
    /// The member demands other terms; the text names these and the ones that hold.
    Refused(String),
}

pub(super) fn judge_demands(terms: &GroupTerms, demands: &Demands) -> DemandsVerdict {
    // First, because demands that conflict must not settle open terms.
    if let Some(why) = conflict(terms, demands) {
        return DemandsVerdict::Refused(why);
    }
    let of_policy = demands.policy.is_some() || brings_profile(terms, demands);
    if (terms.open.policy && of_policy) || (terms.open.interval && demands.interval_ms.is_some()) {
        return DemandsVerdict::Settles;
    }
    DemandsVerdict::Welcome
}

fn brings_profile(terms: &GroupTerms, demands: &Demands) -> bool {
    demands.profile.is_some() && demands.profile != terms.profile
}

/// Text about the first demand that is neither open nor met.
fn conflict(terms: &GroupTerms, demands: &Demands) -> Option<String> {
    let policy = demands.policy.as_ref().filter(|_| !terms.open.policy);
    if let Some(policy) = policy.filter(|policy| **policy != terms.policy) {
        return Some(conflict_text("policy", policy, &terms.policy));
    }
    let interval = demands.interval_ms.filter(|_| !terms.open.interval);
    if let Some(interval) = interval.filter(|interval| *interval != terms.interval_ms) {
        let ms = |ms: u64| format!("{ms} ms");
        return Some(conflict_text(
            "an interval of",
            &ms(interval),
            &ms(terms.interval_ms),
        ));
    }
    // A recording in the terms was demanded, whether the policy is open or not.
    let is_fixed = !terms.open.policy || terms.profile.is_some();
    if brings_profile(terms, demands) && is_fixed {
        let [theirs, ours] = [demands, &terms.demands()].map(|demands| {
            let path = demands.profile.as_ref();
            path.map_or("none".to_owned(), |path| path.display().to_string())
        });
        return Some(conflict_text("profile", &theirs, &ours));
    }
    let differs = demands.dry_run != terms.dry_run;
    differs.then(|| conflict_text("--dry-run", &demands.dry_run, &terms.dry_run))
}

fn conflict_text(what: &str, theirs: &dyn Display, ours: &dyn Display) -> String {
    format!(
        "it runs with {what} {ours}, and you demand {what} {theirs}; demand the same, leave it out, \
         or use another group"
    )
}

#[cfg(test)]
mod demands_tests {
    use super::*;
    use crate::protocol::OpenTerms;

    fn terms(open: OpenTerms) -> GroupTerms {
        GroupTerms {
            leader: 1,
            run: String::new(),
            policy: "auto".to_owned(),
            interval_ms: 1_000,
            dry_run: false,
            profile: None,
            open,
        }
    }

    const OPEN: OpenTerms = OpenTerms {
        policy: true,
        interval: true,
    };

    fn asking(policy: Option<&str>, interval_ms: Option<u64>, profile: Option<&str>) -> Demands {
        Demands {
            policy: policy.map(str::to_owned),
            interval_ms,
            dry_run: false,
            profile: profile.map(Into::into),
        }
    }

    #[test]
    fn open_terms_are_settled_by_demands() {
        let open = terms(OPEN);
        for demands in [
            asking(Some("gang"), None, None),
            asking(None, Some(20), None),
            asking(None, None, Some("/p.json")),
            asking(Some("fair-mis"), Some(20), Some("/p.json")),
        ] {
            assert_eq!(
                judge_demands(&open, &demands),
                DemandsVerdict::Settles,
                "{demands:?}"
            );
        }
        assert_eq!(
            judge_demands(&open, &asking(None, None, None)),
            DemandsVerdict::Welcome
        );
    }

    #[test]
    fn settled_terms_are_not_settled_again() {
        let settled = terms(OpenTerms::default());
        for demands in [
            asking(Some("gang"), None, None),
            asking(None, Some(20), None),
            asking(None, None, Some("/p.json")),
        ] {
            let verdict = judge_demands(&settled, &demands);
            assert!(matches!(verdict, DemandsVerdict::Refused(_)), "{demands:?}");
        }
        let same = asking(Some("auto"), Some(1_000), None);
        assert_eq!(judge_demands(&settled, &same), DemandsVerdict::Welcome);
    }

    #[test]
    fn dry_run_is_never_open() {
        let dry_run = true;
        let demands = Demands {
            dry_run,
            ..asking(Some("gang"), None, None)
        };
        let verdict = judge_demands(&terms(OPEN), &demands);
        assert!(matches!(verdict, DemandsVerdict::Refused(_)), "{verdict:?}");
    }

    #[test]
    fn successor_leaves_open_terms_open() {
        let demands = terms(OPEN).demands();
        assert_eq!(demands, asking(None, None, None));
        let demands = terms(OpenTerms::default()).demands();
        assert_eq!(demands, asking(Some("auto"), Some(1_000), None));
    }
}
