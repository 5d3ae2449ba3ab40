//! Stages of the work on a load: watched, on trial, settled.

use super::candidate::Candidate;
use super::crowd::Crowd;
use super::levels::{How, Level, Scene, Weighed};
use super::memory::Remembered;
use super::phase::Phase;
use super::trials::{Outcome, Trials};

/// Stage of the work on a load.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// Watched for so many quanta.
    Looking(u32),
    /// Mappings are tried.
    Trying(Box<Trials>),
    /// A mapping was chosen.
    Settled(Box<Settled>),
}

/// A mapping that was chosen.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    pub(super) candidate: Candidate,
    /// None where nothing could be measured.
    pub(super) outcome: Option<Outcome>,
    phase: Phase,
    /// Quanta until it may be tried again.
    rest: u64,
}

impl Stage {
    /// The mapping that the threads are under.
    pub(super) fn candidate(&self) -> Candidate {
        match self {
            Self::Looking(_) => Candidate::Os,
            Self::Trying(trials) => trials.candidate(),
            Self::Settled(settled) => settled.candidate,
        }
    }
}

impl Settled {
    pub(super) fn of(remembered: Remembered) -> Self {
        Self {
            candidate: remembered.outcome.chosen,
            outcome: Some(remembered.outcome),
            phase: Phase::default(),
            rest: remembered.rest,
        }
    }

    /// Settles on the choice of the levels if it promises anything over the operating system.
    pub(super) fn unmeasured(scene: &Scene<'_>, levels: &[Level]) -> Self {
        let decided = |level: &&Level| level.how != How::Undecided;
        let best = levels.iter().any(|l| decided(&l)).then(|| levels.last());
        let best: Option<&Weighed> = best.flatten().map(Level::best);
        let os = scene.weigh(Candidate::Os).bill.total();
        let better = best.filter(|b| b.bill.total() <= os);
        Self {
            candidate: better.map_or(Candidate::Os, |b| b.candidate),
            outcome: None,
            phase: Phase::default(),
            rest: 0,
        }
    }

    /// Takes a quantum in. Returns true where a measured mapping's programs no longer behave as
    /// when it was chosen, and it may be tried again.
    pub(super) fn is_over(&mut self, crowd: &Crowd<'_>) -> bool {
        self.rest = self.rest.saturating_sub(1);
        let changed = self.outcome.is_some() && self.phase.note(crowd);
        changed && self.rest == 0
    }
}
