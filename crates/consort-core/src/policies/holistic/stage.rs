//! Stages of the work on a load: watched, on trial, settled.

use super::active_programs::ActivePrograms;
use super::candidate::MappingCandidate;
use super::levels::{ChoiceBasis, ChoiceLevel, MappingContext, PricedMapping};
use super::load_history::LoadOutcome;
use super::phase::SpeedMonitor;
use super::trials::{MappingTrials, TrialOutcome};

/// Stage of the work on a load.
#[derive(Clone, Debug)]
pub(super) enum GuidelineStage {
    /// Watched for so many quanta.
    Looking(u32),
    /// Mappings are tried.
    Trying(Box<MappingTrials>),
    /// A mapping was chosen.
    Settled(Box<SettledMapping>),
}

/// A mapping that was chosen.
#[derive(Clone, Debug)]
pub(super) struct SettledMapping {
    pub(super) candidate: MappingCandidate,
    /// None where nothing could be measured.
    pub(super) outcome: Option<TrialOutcome>,
    phase: SpeedMonitor,
    /// Quanta until it may be tried again.
    rest: u64,
}

impl GuidelineStage {
    /// The mapping that the threads are under.
    pub(super) fn candidate(&self) -> MappingCandidate {
        match self {
            Self::Looking(_) => MappingCandidate::Os,
            Self::Trying(trials) => trials.candidate(),
            Self::Settled(settled) => settled.candidate,
        }
    }
}

impl SettledMapping {
    pub(super) fn from_outcome(remembered: LoadOutcome) -> Self {
        Self {
            candidate: remembered.outcome.chosen,
            outcome: Some(remembered.outcome),
            phase: SpeedMonitor::default(),
            rest: remembered.rest,
        }
    }

    /// Settles on the choice of the levels if it promises anything over the operating system.
    pub(super) fn from_prediction(scene: &MappingContext<'_>, levels: &[ChoiceLevel]) -> Self {
        let decided = |level: &&ChoiceLevel| level.how != ChoiceBasis::Undecided;
        let best = levels.iter().any(|l| decided(&l)).then(|| levels.last());
        let best: Option<&PricedMapping> = best.flatten().map(ChoiceLevel::best);
        let os = scene.price_candidate(MappingCandidate::Os).bill.total();
        let better = best.filter(|b| b.bill.total() <= os);
        Self {
            candidate: better.map_or(MappingCandidate::Os, |b| b.candidate),
            outcome: None,
            phase: SpeedMonitor::default(),
            rest: 0,
        }
    }

    /// Takes a quantum in. Returns true where a measured mapping's programs no longer behave as
    /// when it was chosen, and it may be tried again.
    pub(super) fn record_quantum(&mut self, crowd: &ActivePrograms<'_>) -> bool {
        self.rest = self.rest.saturating_sub(1);
        let changed = self.outcome.is_some() && self.phase.record_quantum(crowd);
        changed && self.rest == 0
    }
}
