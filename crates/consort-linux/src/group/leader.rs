//! A leader's side: who comes, who goes, and on what terms.

use super::conversation::{Conversation, End, Stage, Wish};
use super::error::GroupError;
use super::lock::Lock;
use super::message::{Answer, Demands, Joining, Terms};
use super::name::GroupName;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Uid;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

/// Conversations at a time; a group has one member less than that, as the leader has none.
const MOST: usize = 64;

/// Who has the lock of a group and does not lead it yet.
#[derive(Debug)]
pub struct Candidate {
    lock: Lock,
}

/// The leader of a group. Dropping it gives the lead away: do so when every mask is put back.
#[derive(Debug)]
pub struct Leader {
    terms: Terms,
    listener: UnixListener,
    conversations: BTreeMap<u64, Conversation>,
    next: u64,
    most_programs: usize,
    // Last, so that the socket is closed before the lock is free.
    lock: Lock,
}

/// What a leader has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attended {
    /// A member asks for its command to be managed; [`Leader::answer`] it.
    Asks {
        /// The conversation.
        conversation: u64,
        /// The process of the member, which must be the command's parent.
        peer: u32,
        /// The command.
        program: Joining,
    },
    /// A member's command should run, as it was sent a signal.
    Wakes(u32),
    /// A member has gone: its command has ended, or is nobody's any more.
    Leaves(u32),
}

impl Candidate {
    pub(super) fn new(lock: Lock) -> Self {
        Self { lock }
    }

    /// Begins to lead, on these terms.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn lead(self, terms: Terms) -> Result<Leader, GroupError> {
        let path = self.lock.socket();
        let listen = || {
            let listener = UnixListener::bind(&path)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|source| GroupError::File {
            action: "listen at",
            path: path.clone(),
            source,
        })?;
        Ok(Leader {
            terms,
            listener,
            conversations: BTreeMap::new(),
            next: 0,
            most_programs: 1,
            lock: self.lock,
        })
    }
}

impl Leader {
    /// The group.
    pub fn group(&self) -> &GroupName {
        self.lock.group()
    }

    /// The terms that it holds.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Most programs that the group had at a time, the leader's own included.
    pub fn most_programs(&self) -> usize {
        self.most_programs
    }

    /// What to poll for reading; then [`Leader::attend`].
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let peers = self.conversations.values().map(AsFd::as_fd);
        std::iter::once(self.listener.as_fd()).chain(peers)
    }

    /// Lets in who waits, hears what was said, and tells what there is to do. Does not wait.
    pub fn attend(&mut self, now: Instant) -> Vec<Attended> {
        self.let_in(now);
        let ids: Vec<u64> = self.conversations.keys().copied().collect();
        ids.into_iter()
            .flat_map(|id| self.attend_one(id, now))
            .collect()
    }

    /// Answers a member that has [asked](Attended::Asks).
    pub fn answer(&mut self, conversation: u64, program: u32, answer: &Answer) {
        let Some(peer) = self.conversations.get_mut(&conversation) else {
            return;
        };
        if peer.answer(answer) && *answer == Answer::Taken {
            peer.stage = Stage::Managed(program);
            let programs = self
                .conversations
                .values()
                .filter_map(Conversation::program);
            self.most_programs = self.most_programs.max(1 + programs.count());
        } else {
            self.conversations.remove(&conversation);
        }
    }

    fn let_in(&mut self, now: Instant) {
        while let Ok((stream, _)) = self.listener.accept() {
            let refusal = self.refusal(&stream);
            let peer = peer_of(&stream).map_or(0, |(_, pid)| pid);
            let Ok(mut guest) = Conversation::new(stream, peer, now) else {
                continue;
            };
            match refusal {
                Some(why) => drop(guest.answer(&Answer::Refused(why))),
                None => {
                    self.conversations.insert(self.next, guest);
                    self.next += 1;
                }
            }
        }
    }

    /// Why somebody is not let in.
    fn refusal(&self, stream: &UnixStream) -> Option<String> {
        let own = Uid::effective().as_raw();
        match peer_of(stream) {
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

    fn attend_one(&mut self, id: u64, now: Instant) -> Vec<Attended> {
        let Some(peer) = self.conversations.get_mut(&id) else {
            return Vec::new();
        };
        if peer.is_overdue(now) {
            self.conversations.remove(&id);
            return Vec::new();
        }
        match peer.hear() {
            Ok(wishes) => {
                let wishes = wishes.into_iter();
                wishes.filter_map(|wish| self.grant(id, wish)).collect()
            }
            Err(end) => self.end(id, &end).into_iter().collect(),
        }
    }

    fn grant(&mut self, id: u64, wish: Wish) -> Option<Attended> {
        let peer = self.conversations.get_mut(&id)?;
        match wish {
            Wish::Terms(demands) => {
                let answer = answer_to(&self.terms, &demands);
                let welcome = matches!(answer, Answer::Welcome(_));
                peer.stage = Stage::Welcomed;
                if !peer.answer(&answer) || !welcome {
                    self.conversations.remove(&id);
                }
                None
            }
            Wish::Take(program) => Some(Attended::Asks {
                conversation: id,
                peer: peer.peer,
                program,
            }),
            Wish::Wake(program) => Some(Attended::Wakes(program)),
        }
    }

    fn end(&mut self, id: u64, end: &End) -> Option<Attended> {
        let mut peer = self.conversations.remove(&id)?;
        if !matches!(end, End::Gone) {
            // One that talks nonsense may still read why it is left alone.
            peer.answer(&Answer::Refused(end.to_string()));
        }
        peer.program().map(Attended::Leaves)
    }
}

/// Effective user and process at the other end.
fn peer_of(stream: &UnixStream) -> io::Result<(u32, u32)> {
    let peer = getsockopt(stream, PeerCredentials)?;
    Ok((peer.uid(), peer.pid().cast_unsigned()))
}

/// Whether a member may join: what it asks for must be what holds.
fn answer_to(terms: &Terms, demands: &Demands) -> Answer {
    let conflict = |what: &str, theirs: &dyn std::fmt::Display, ours: &dyn std::fmt::Display| {
        Answer::Refused(format!(
            "it runs with {what} {ours}, and {what} {theirs} was asked for; \
             ask for the same, leave it out, or use another group"
        ))
    };
    match demands {
        Demands {
            policy: Some(policy),
            ..
        } if *policy != terms.policy => conflict("policy", policy, &terms.policy),
        Demands {
            interval_ms: Some(interval),
            ..
        } if *interval != terms.interval_ms => conflict(
            "an interval of",
            &format_args!("{interval} ms"),
            &format_args!("{} ms", terms.interval_ms),
        ),
        Demands {
            profile: Some(profile),
            ..
        } if Some(profile) != terms.profile.as_ref() => {
            let ours = terms
                .profile
                .as_ref()
                .map(|path| path.display().to_string());
            conflict(
                "profile",
                &profile.display(),
                &ours.as_deref().unwrap_or("none"),
            )
        }
        Demands { dry_run, .. } if *dry_run != terms.dry_run => {
            conflict("--dry-run", dry_run, &terms.dry_run)
        }
        _ => Answer::Welcome(terms.clone()),
    }
}

#[cfg(test)]
mod tests;
