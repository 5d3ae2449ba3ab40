//! Terms of a group that were open, and that a member settles while its leader runs.
//!
//! The control loop and its policy are the caller's: it asks for the [`LiveMachine::proposal`] after each
//! turn, makes the policy that was asked for, and reports the outcome by [`LiveMachine::settle_terms`]. Until
//! then the member waits, with nothing started.

use super::membership::millis;
use super::{LiveMachine, RecordedMeasures};
use crate::group::{Demands, GroupTerms, Leader, OpenTerms};
use consort_core::SignalOffers;
use std::time::{Duration, Instant};

/// Terms that hold for a group from now on.
#[derive(Clone, Debug)]
pub struct SettledTerms {
    /// Policy with options, as text.
    pub policy: String,
    /// Length of the quantum.
    pub interval: Duration,
    /// Measures that this host cannot count, where the member brings any.
    pub recorded: Option<RecordedMeasures>,
}

impl LiveMachine {
    /// Demands of a member that concern open terms.
    pub fn proposal(&self) -> Option<&Demands> {
        self.group.as_ref().and_then(Leader::proposal)
    }

    /// The terms of the group that this run leads, if any.
    pub fn terms(&self) -> Option<&GroupTerms> {
        self.group.as_ref().map(Leader::terms)
    }

    /// Signals that would be offered with these measures.
    ///
    /// # Errors
    /// When a program of the group is not among them.
    pub fn offers_with(&self, recorded: &RecordedMeasures) -> Result<SignalOffers, String> {
        for (_, name) in self.roster.trees().names() {
            recorded.check(&name).map_err(|error| error.to_string())?;
        }
        let mut offers = self.senses.offers().clone();
        recorded.offer(&mut offers);
        Ok(offers)
    }

    /// Answers the [proposal](LiveMachine::proposal): with terms that hold from now on, or the reason
    /// against.
    pub fn settle_terms(&mut self, settled: Result<SettledTerms, String>) {
        let terms = settled.and_then(|settled| {
            let terms = self.new_terms(&settled).ok_or("nothing was asked for")?;
            self.adopt_terms(settled);
            Ok(terms)
        });
        if let Some(leader) = &mut self.group {
            leader.settle_terms(terms, Instant::now());
        }
    }

    /// The present terms, changed as the proposal settles them.
    fn new_terms(&self, settled: &SettledTerms) -> Option<GroupTerms> {
        let demands = self.proposal()?;
        let terms = self.terms()?;
        let profile = settled.recorded.as_ref().map(|r| r.origin().to_owned());
        let names_policy = demands.policy.is_some() || profile.is_some();
        Some(GroupTerms {
            policy: settled.policy.clone(),
            interval_ms: millis(settled.interval),
            profile: profile.or_else(|| terms.profile.clone()),
            open: OpenTerms {
                policy: terms.open.policy && !names_policy,
                interval: terms.open.interval && demands.interval_ms.is_none(),
            },
            ..terms.clone()
        })
    }

    fn adopt_terms(&mut self, settled: SettledTerms) {
        self.clock.set_quantum(settled.interval);
        if let Some(recorded) = settled.recorded {
            self.warnings.insert(self.senses.use_recording(recorded));
        }
    }
}
