//! Succession in a group whose leader is gone: the election of the next, and its beginning.
//!
//! Before the next leader touches anything, the old one's guardian must be done: until then a mask
//! that Consort narrowed may be in force, and would be taken for an original.

use super::LiveMachine;
use super::error::LiveError;
use super::follower::{FollowOutcome, Follower, FollowerState, hand_over};
use super::launch::{RESTORE_LIMIT, RunResources};
use super::membership::terms;
use super::observers::RecordedMeasures;
use crate::enact::{Enactor, recover_stale};
use crate::group::{GroupPlace, LeaderCandidate, try_enter_group};
use std::time::Instant;

impl Follower {
    /// Attempts once to find or become the next leader.
    pub(super) fn seek(&mut self) -> FollowerState {
        let dirs = &self.settings.enact.runtime_dirs;
        let found = try_enter_group(dirs, &self.group.name, &self.group.demands);
        let taken = found.and_then(|place| match place {
            Some(GroupPlace::Follows(mut member)) => {
                let (root, pid) = (&self.host.root, self.child.pid());
                let there = hand_over(root, &mut member, pid, &self.command)?;
                self.terms = member.terms().clone();
                self.adopt_terms();
                Ok(if there {
                    FollowerState::Follows(member)
                } else {
                    FollowerState::Seeks
                })
            }
            // A daemon is started by whoever wants one; until then the command runs as it is.
            Some(GroupPlace::Leads(_)) if self.group.name.is_daemon() => Ok(FollowerState::Seeks),
            Some(GroupPlace::Leads(candidate)) => Ok(FollowerState::Elected(
                candidate,
                Instant::now() + RESTORE_LIMIT,
            )),
            None => Ok(FollowerState::Seeks),
        });
        taken.unwrap_or_else(|error| self.continue_alone(&error))
    }

    fn continue_alone(&mut self, error: &dyn std::error::Error) -> FollowerState {
        let text =
            format!("the command went on unmanaged when its group's leader was gone: {error}");
        self.warnings.insert(text);
        FollowerState::Alone
    }

    /// Returns true if the old leader's masks are put back. Its guardian does that; if the guardian
    /// is dead as well, this call does.
    pub(super) fn is_restored(&self) -> bool {
        recover_stale(&self.settings.enact.runtime_dirs).restoring == 0
    }

    pub(super) fn lead(mut self, candidate: LeaderCandidate) -> Result<FollowOutcome, LiveError> {
        self.settings.recorded = self.read_recording();
        let led = Enactor::start(&self.settings.enact).map_err(LiveError::from);
        let led = led.and_then(|enactor| {
            let terms = terms(&enactor, &self.settings, &self.group);
            match candidate.lead(terms.clone()) {
                Ok(leader) => Ok((enactor, leader, terms)),
                Err(error) => {
                    enactor.close();
                    Err(error.into())
                }
            }
        });
        let (enactor, leader, terms) = match led {
            Ok(led) => led,
            Err(error) => {
                self.standing = self.continue_alone(&error);
                return self.follow();
            }
        };
        let running = RunResources {
            child: Some(self.child),
            name: self.command,
            signals: self.signals,
            enactor,
            group: Some(leader),
            start: self.start,
            warnings: self.warnings,
        };
        let live = LiveMachine::take_over(self.host, &self.settings, running)?;
        Ok(FollowOutcome::Leads(Box::new(live), terms))
    }

    /// Reads the group's recording, which a leader before this one has read, too.
    fn read_recording(&mut self) -> Option<RecordedMeasures> {
        let read = RecordedMeasures::read(self.terms.profile.as_ref()?);
        read.map_err(|error| self.warnings.insert(error.to_string()))
            .ok()
    }
}
