//! A leader's side of a group: its socket, its members, and the terms.

use super::error::GroupError;
use super::lock::GroupLock;
use super::member_connection::{AcceptedRequest, DisconnectReason, JoinStage, MemberConnection};
use super::message::{Demands, GroupTerms, JoiningCommand, LeaderMessage};
use super::name::GroupName;
use super::verdict::{DemandsVerdict, judge_demands};
use crate::acceptor::Acceptor;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Uid;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

/// Most programs of a group, the leader's own included; so there is one conversation fewer.
const MOST: usize = 64;

/// A run that has the lock of a group and does not lead it yet.
#[derive(Debug)]
pub struct LeaderCandidate {
    lock: GroupLock,
}

/// The leader of a group. Dropping it lets another run lead: do so when every mask is put back.
#[derive(Debug)]
pub struct Leader {
    terms: GroupTerms,
    acceptor: Acceptor,
    conversations: BTreeMap<u64, MemberConnection>,
    next: u64,
    /// The conversation that waits for open terms to be settled, and its demands.
    proposal: Option<(u64, Demands)>,
    most_programs: usize,
    // Last, so that the socket is closed before the lock is free.
    lock: GroupLock,
}

/// A task that a member gives to the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderTask {
    /// Manage a member's command; [`Leader::answer`] it.
    Asks {
        /// The conversation.
        conversation: u64,
        /// Process of the member, which must be the command's parent.
        peer: u32,
        /// The command.
        program: JoiningCommand,
    },
    /// Let the command of this process run if it is paused, as it was sent a signal.
    Wakes(u32),
    /// Let go of the command of this process: it has ended, or its member has gone.
    Leaves(u32),
}

impl LeaderCandidate {
    pub(super) fn new(lock: GroupLock) -> Self {
        Self { lock }
    }

    /// Begins to lead, on these terms.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn lead(self, terms: GroupTerms) -> Result<Leader, GroupError> {
        let path = self.lock.socket();
        let listen = || Acceptor::new(UnixListener::bind(&path)?);
        let acceptor = listen().map_err(|source| GroupError::File {
            action: "listen at",
            path: path.clone(),
            source,
        })?;
        Ok(Leader {
            terms,
            acceptor,
            conversations: BTreeMap::new(),
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

    /// Returns true while somebody is in a conversation, and so to be attended even if nothing comes.
    pub(crate) fn has_connections(&self) -> bool {
        !self.conversations.is_empty()
    }

    /// Descriptors to poll for reading; then [`Leader::serve_members`].
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let peers = self.conversations.values().map(AsFd::as_fd);
        self.acceptor.fd().into_iter().chain(peers)
    }

    /// Accepts new members, hears all of them, and returns the tasks that follow. Does not wait.
    pub fn serve_members(&mut self, now: Instant) -> Vec<LeaderTask> {
        self.accept_members(now);
        let ids: Vec<u64> = self.conversations.keys().copied().collect();
        ids.into_iter()
            .flat_map(|id| self.serve_member(id, now))
            .collect()
    }

    /// Answers a member that has [asked](LeaderTask::Asks) for its command to be managed.
    pub fn answer(&mut self, conversation: u64, program: u32, answer: &LeaderMessage) {
        let Some(peer) = self.conversations.get_mut(&conversation) else {
            return;
        };
        if peer.answer(answer) && *answer == LeaderMessage::Taken {
            peer.stage = JoinStage::Managed(program);
            let programs = self
                .conversations
                .values()
                .filter_map(MemberConnection::program);
            self.most_programs = self.most_programs.max(1 + programs.count());
        } else {
            self.conversations.remove(&conversation);
        }
    }

    /// Demands of a member that concern open terms. [`Leader::settle_terms`] them soon, as no new member
    /// is heard before.
    pub fn proposal(&self) -> Option<&Demands> {
        self.proposal.as_ref().map(|(_, demands)| demands)
    }

    /// Answers a [proposal](Leader::proposal): with terms that hold for all from now on, or with
    /// the reason for which they cannot.
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

    /// Tells all members the terms that hold from now on.
    fn send_terms(&mut self) {
        let answer = LeaderMessage::Terms(self.terms.clone());
        let peers = self.conversations.values_mut();
        for peer in peers.filter(|peer| peer.is_member()) {
            if !peer.answer(&answer) {
                peer.hang_up();
            }
        }
    }

    fn welcome(&mut self, id: u64, now: Instant) {
        let answer = LeaderMessage::Welcome(self.terms.clone());
        let Some(peer) = self.conversations.get_mut(&id) else {
            return;
        };
        peer.enter(JoinStage::Welcomed, now);
        if !peer.answer(&answer) {
            self.conversations.remove(&id);
        }
    }

    fn refuse(&mut self, id: u64, why: String) {
        if let Some(mut peer) = self.conversations.remove(&id) {
            peer.answer(&LeaderMessage::Refused(why));
        }
    }

    fn accept_members(&mut self, now: Instant) {
        for stream in self.acceptor.accept_waiting(now) {
            let refusal = self.refusal(&stream);
            let peer = peer_credentials(&stream).map_or(0, |(_, pid)| pid);
            let Ok(mut guest) = MemberConnection::new(stream, peer, now) else {
                continue;
            };
            match refusal {
                Some(why) => drop(guest.answer(&LeaderMessage::Refused(why))),
                None => {
                    self.conversations.insert(self.next, guest);
                    self.next += 1;
                }
            }
        }
    }

    /// Reason for which a caller is not let in, if any.
    fn refusal(&self, stream: &UnixStream) -> Option<String> {
        let own = Uid::effective().as_raw();
        match peer_credentials(stream) {
            Err(error) => Some(format!("who is calling cannot be told: {error}")),
            Ok((uid, _)) if uid != own => Some(format!(
                "it is a group of user {own}, and user {uid} is calling"
            )),
            Ok(_) if self.conversations.len() >= MOST - 1 => Some(format!(
                "it has {MOST} programs, and no leader takes more; use another group"
            )),
            Ok(_) => None,
        }
    }

    fn serve_member(&mut self, id: u64, now: Instant) -> Vec<LeaderTask> {
        let Some(peer) = self.conversations.get_mut(&id) else {
            return Vec::new();
        };
        if peer.is_overdue(now) {
            self.conversations.remove(&id);
            return Vec::new();
        }
        if peer.stage == JoinStage::New && self.proposal.is_some() {
            // The terms that it could join on are not settled yet.
            return Vec::new();
        }
        match peer.read_requests() {
            Ok(wishes) => {
                let wishes = wishes.into_iter();
                wishes
                    .filter_map(|wish| self.handle_request(id, wish, now))
                    .collect()
            }
            Err(end) => self.end(id, &end).into_iter().collect(),
        }
    }

    fn handle_request(
        &mut self,
        id: u64,
        wish: AcceptedRequest,
        now: Instant,
    ) -> Option<LeaderTask> {
        match wish {
            AcceptedRequest::Terms(demands) => {
                self.judge(id, demands, now);
                None
            }
            AcceptedRequest::Take(program) => Some(LeaderTask::Asks {
                conversation: id,
                peer: self.conversations.get(&id)?.peer,
                program,
            }),
            AcceptedRequest::Wake(program) => Some(LeaderTask::Wakes(program)),
        }
    }

    fn judge(&mut self, id: u64, demands: Demands, now: Instant) {
        match judge_demands(&self.terms, &demands) {
            DemandsVerdict::Welcome => self.welcome(id, now),
            DemandsVerdict::Refused(why) => self.refuse(id, why),
            DemandsVerdict::Settles => {
                if let Some(peer) = self.conversations.get_mut(&id) {
                    peer.enter(JoinStage::Proposes, now);
                    self.proposal = Some((id, demands));
                }
            }
        }
    }

    fn end(&mut self, id: u64, end: &DisconnectReason) -> Option<LeaderTask> {
        let mut peer = self.conversations.remove(&id)?;
        self.proposal = self.proposal.take().filter(|(of, _)| *of != id);
        if !matches!(end, DisconnectReason::Gone) {
            // A peer that was not understood may still read the reason for which it is left alone.
            peer.answer(&LeaderMessage::Refused(end.to_string()));
        }
        peer.program().map(LeaderTask::Leaves)
    }
}

/// Effective user and process at the other end; process 0 if it is in another PID namespace.
fn peer_credentials(stream: &UnixStream) -> io::Result<(u32, u32)> {
    let peer = getsockopt(stream, PeerCredentials)?;
    Ok((peer.uid(), peer.pid().cast_unsigned()))
}

#[cfg(test)]
mod tests;
