//! Outcomes of trials by load: a load that comes back is not tried anew.

use super::active_programs::LoadSignature;
use super::candidate::MappingCandidate;
use super::trials::TrialOutcome;

/// Loads that are remembered.
const LOADS: usize = 32;
/// Quanta until a load may be tried again, at first; doubled each time that nothing changes.
const FIRST_REST: u64 = 64;
/// Quanta at most.
const LONGEST_REST: u64 = 4096;

/// One load.
#[derive(Clone, Debug)]
pub(super) struct LoadOutcome {
    signature: LoadSignature,
    pub(super) outcome: TrialOutcome,
    /// Quanta for which the outcome holds whatever the programs do.
    pub(super) rest: u64,
}

/// The last loads, the latest at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadHistory(Vec<LoadOutcome>);

impl LoadHistory {
    pub(super) fn find(&self, signature: &LoadSignature) -> Option<&LoadOutcome> {
        self.0.iter().find(|r| r.signature == *signature)
    }

    /// Keeps an outcome; where it is the one that was known, it holds for twice as long.
    pub(super) fn store_outcome(
        &mut self,
        signature: &LoadSignature,
        outcome: TrialOutcome,
    ) -> LoadOutcome {
        let known = self.0.iter().position(|r| r.signature == *signature);
        let known = known.map(|at| self.0.remove(at));
        let same = |old: &LoadOutcome, chosen: MappingCandidate| old.outcome.chosen == chosen;
        let rest = match known {
            Some(old) if same(&old, outcome.chosen) => (2 * old.rest).min(LONGEST_REST),
            _ => FIRST_REST,
        };
        let kept = LoadOutcome {
            signature: signature.clone(),
            outcome,
            rest,
        };
        self.0.push(kept.clone());
        if self.0.len() > LOADS {
            self.0.remove(0);
        }
        kept
    }
}
