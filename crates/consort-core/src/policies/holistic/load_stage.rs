//! Stages of the work on a load: watched, on trial, settled; and the outcomes of earlier loads.

use super::active_programs::{ActivePrograms, LoadSignature};
use super::candidate::MappingCandidate;
use super::levels::{ChoiceBasis, ChoiceLevel, MappingContext};
use super::trials::{MappingTrials, TrialOutcome};
use crate::signal::Signal;

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
    /// `None` if nothing could be measured.
    pub(super) outcome: Option<TrialOutcome>,
    monitor: SpeedMonitor,
    /// Quanta until the load may be tried again.
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
            monitor: SpeedMonitor::default(),
            rest: remembered.rest,
        }
    }

    /// Settles on the choice of the levels if it costs no more than the operating system's mapping
    /// and some level had a reason for its choice.
    pub(super) fn from_prediction(scene: &MappingContext<'_>, levels: &[ChoiceLevel]) -> Self {
        let decided = levels.iter().any(|l| l.how != ChoiceBasis::Undecided);
        let os = scene.price_candidate(MappingCandidate::Os).bill.total();
        let best = levels.last().filter(|_| decided).map(ChoiceLevel::best);
        let better = best.filter(|best| best.bill.total() <= os);
        Self {
            candidate: better.map_or(MappingCandidate::Os, |best| best.candidate),
            outcome: None,
            monitor: SpeedMonitor::default(),
            rest: 0,
        }
    }

    /// Records a quantum. Returns true if the programs of a measured mapping no longer behave as
    /// when it was chosen, and it may be tried again.
    pub(super) fn record_quantum(&mut self, crowd: &ActivePrograms<'_>) -> bool {
        self.rest = self.rest.saturating_sub(1);
        let changed = self.outcome.is_some() && self.monitor.record_quantum(crowd);
        changed && self.rest == 0
    }
}

/// Quanta that the reference is the mean of, and that a change must last.
const QUANTA: u32 = 8;
/// Relative change of a program's instructions per s of CPU time that is a new phase.
const CHANGE: f64 = 0.3;

/// Detects programs that no longer behave as when their mapping was chosen.
#[derive(Clone, Debug, Default)]
struct SpeedMonitor {
    /// Mean speed by program, instructions per ns of CPU time.
    reference: Vec<f64>,
    /// Quanta that the reference is the mean of, so far.
    quanta: u32,
    /// Quanta in succession that differed.
    strayed: u32,
}

impl SpeedMonitor {
    /// Records a quantum. Returns true if a new phase has begun.
    fn record_quantum(&mut self, crowd: &ActivePrograms<'_>) -> bool {
        let mut speeds = Vec::new();
        for group in &crowd.groups {
            let instructions = group.sum(Signal::Instructions);
            let speed = match instructions.zip(group.sum(Signal::CpuTime)) {
                Some((instructions, cpu_ns)) if cpu_ns > 0.0 => instructions / cpu_ns,
                _ => 0.0,
            };
            speeds.push(speed);
        }
        if self.quanta < QUANTA {
            self.quanta += 1;
            self.reference.resize(speeds.len(), 0.0);
            for (mean, speed) in self.reference.iter_mut().zip(speeds) {
                *mean += (speed - *mean) / f64::from(self.quanta);
            }
            return false;
        }
        let strayed = speeds
            .iter()
            .zip(&self.reference)
            .any(|(speed, reference)| {
                (speed - reference).abs() > CHANGE * reference.max(f64::MIN_POSITIVE)
            });
        self.strayed = if strayed { self.strayed + 1 } else { 0 };
        self.strayed >= QUANTA
    }
}

/// Loads that are remembered.
const LOADS: usize = 32;
/// Quanta until a load may be tried again, at first; doubled each time that nothing changes.
const FIRST_REST: u64 = 64;
const LONGEST_REST: u64 = 4096;

/// Outcome of the trials of a load.
#[derive(Clone, Debug)]
pub(super) struct LoadOutcome {
    signature: LoadSignature,
    outcome: TrialOutcome,
    /// Quanta for which the outcome holds whatever the programs do.
    rest: u64,
}

/// Outcomes of the last loads, the latest at the end, so that a load that comes back is not tried
/// again.
#[derive(Clone, Debug, Default)]
pub(super) struct LoadHistory(Vec<LoadOutcome>);

impl LoadHistory {
    pub(super) fn find(&self, signature: &LoadSignature) -> Option<&LoadOutcome> {
        self.0.iter().find(|r| r.signature == *signature)
    }

    /// Stores an outcome. If it is the one that was known, it holds for twice as long.
    pub(super) fn store_outcome(
        &mut self,
        signature: &LoadSignature,
        outcome: TrialOutcome,
    ) -> LoadOutcome {
        let known = self.0.iter().position(|r| r.signature == *signature);
        let known = known.map(|at| self.0.remove(at));
        let rest = match known {
            Some(old) if old.outcome.chosen == outcome.chosen => (2 * old.rest).min(LONGEST_REST),
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
