//! Trials of mappings on the programs themselves.
//!
//! Rounds, in each of which every mapping that is still in question has a few quanta; progress is
//! compared with the operating system's mapping within the same round, so that what changes
//! slowly does not count. What is clearly worse drops out. The number of rounds is bounded, so
//! that trying costs a bounded time.

use super::active_programs::{ActiveProgram, ActivePrograms};
use super::candidate::MappingCandidate;
use super::sharing_estimate::TrafficRates;
use crate::signal::Signal;
use crate::stats::{ConfidenceInterval, mean};

/// Quanta after a change that are not counted: caches fill, run queues even out.
const SETTLING: u32 = 1;
/// Quanta that count.
const MEASURED: u32 = 2;
/// Rounds from which on something may drop out or be chosen.
const ROUNDS_TO_JUDGE: usize = 3;
/// Loss, as a logarithm, with which a mapping drops out after one round: three times what
/// programs vary by from one quantum to the next (10 percent, as the described programs do).
const LOST_AT_ONCE: f64 = 0.3;
/// Rounds at most.
const MOST_ROUNDS: usize = 6;

/// A mapping that is tried.
#[derive(Clone, Debug)]
struct MappingTrial {
    candidate: MappingCandidate,
    /// Gain over the operating system by round: mean over programs of the logarithm of the
    /// ratio of their instructions per s.
    gains: Vec<f64>,
    /// Instructions per s by program in this round.
    rates: Option<Vec<f64>>,
    /// Counts of misses, by program.
    seen: Vec<TrafficRates>,
    is_out: bool,
}

/// The trials of one load.
#[derive(Clone, Debug)]
pub(super) struct MappingTrials {
    /// The first one is the operating system's.
    tried: Vec<MappingTrial>,
    /// Place of the mapping that is on.
    at: usize,
    /// Quanta that this mapping has been on.
    quanta: u32,
    rounds: usize,
    sum: InstructionSums,
}

#[derive(Clone, Debug, Default)]
struct InstructionSums {
    instructions: Vec<f64>,
    time_ns: f64,
}

/// Outcome of the trials of a load.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TrialOutcome {
    pub(super) chosen: MappingCandidate,
    /// Gain over the operating system of each, as a share; none where it was not measured.
    pub(super) results: Vec<(MappingCandidate, Option<ConfidenceInterval>)>,
    /// Rounds that the trials took.
    pub(super) rounds: usize,
}

impl MappingTrials {
    /// Trials of these mappings and the operating system's.
    pub(super) fn new(candidates: &[MappingCandidate], groups: usize) -> Self {
        let others = candidates.iter().filter(|&&c| c != MappingCandidate::Os);
        let tried = |candidate| MappingTrial {
            candidate,
            gains: Vec::new(),
            rates: None,
            seen: vec![TrafficRates::default(); groups],
            is_out: false,
        };
        Self {
            tried: std::iter::once(&MappingCandidate::Os)
                .chain(others)
                .map(|&c| tried(c))
                .collect(),
            at: 0,
            quanta: 0,
            rounds: 0,
            sum: InstructionSums::default(),
        }
    }

    /// The mapping to try now.
    pub(super) fn candidate(&self) -> MappingCandidate {
        self.tried[self.at].candidate
    }

    /// The round that is on, from 1, and the greatest number of rounds.
    pub(super) fn round(&self) -> (usize, usize) {
        (self.rounds + 1, MOST_ROUNDS)
    }

    /// Counts of misses under each mapping, by program.
    pub(super) fn traffic_rates(
        &self,
    ) -> impl Iterator<Item = (MappingCandidate, &[TrafficRates])> {
        self.tried.iter().map(|t| (t.candidate, t.seen.as_slice()))
    }

    /// Takes in the quantum that has just ended; returns the outcome once all is known.
    pub(super) fn record_quantum(
        &mut self,
        crowd: &ActivePrograms<'_>,
        interval_ns: u64,
    ) -> Option<TrialOutcome> {
        self.quanta += 1;
        if self.quanta <= SETTLING {
            return None;
        }
        let tried = &mut self.tried[self.at];
        for (seen, group) in tried.seen.iter_mut().zip(&crowd.groups) {
            seen.add(group);
        }
        self.sum.add(crowd, interval_ns);
        if self.quanta < SETTLING + MEASURED {
            return None;
        }
        tried.rates = Some(std::mem::take(&mut self.sum).rates());
        self.quanta = 0;
        self.advance_candidate()
    }

    /// Forgets the sums of an interrupted quantum, which are not of one mapping.
    pub(super) fn interrupt(&mut self) {
        self.quanta = 0;
        self.sum = InstructionSums::default();
    }

    fn advance_candidate(&mut self) -> Option<TrialOutcome> {
        let after = self.tried.iter().skip(self.at + 1);
        if let Some(ahead) = after.into_iter().position(|t| !t.is_out) {
            self.at += 1 + ahead;
            return None;
        }
        self.at = 0;
        self.end_round();
        self.is_over().then(|| self.outcome())
    }

    fn end_round(&mut self) {
        let (os, others) = self.tried.split_at_mut(1);
        let reference = os[0].rates.take().unwrap_or_default();
        for tried in others.iter_mut().filter(|t| !t.is_out) {
            let rates = tried.rates.take().unwrap_or_default();
            tried.gains.extend(gain(&rates, &reference));
        }
        self.rounds += 1;
        self.drop_the_clearly_worse();
    }

    fn drop_the_clearly_worse(&mut self) {
        for tried in &mut self.tried[1..] {
            let last = tried.gains.last();
            tried.is_out |= last.is_none_or(|gain| *gain < -LOST_AT_ONCE);
        }
        if self.rounds < ROUNDS_TO_JUDGE {
            return;
        }
        let surely = self.tried.iter().filter_map(|t| Some(t.gain()?.low()));
        let most = surely.fold(0.0, f64::max);
        for tried in &mut self.tried[1..] {
            tried.is_out |= tried.gain().is_none_or(|gain| gain.high() < most);
        }
    }

    /// Returns true where the trials are over: going on costs more than a wrong order among those
    /// that gain, so they end when the leader surely gains.
    fn is_over(&self) -> bool {
        let left: Vec<ConfidenceInterval> = { self.tried[1..].iter() }
            .filter(|t| !t.is_out)
            .filter_map(MappingTrial::gain)
            .collect();
        let leader = left.iter().max_by(|a, b| a.mean.total_cmp(&b.mean));
        let judged = self.rounds >= ROUNDS_TO_JUDGE;
        leader.is_none_or(|leader| judged && leader.low() > 0.0) || self.rounds >= MOST_ROUNDS
    }

    /// Chooses the mapping with the highest gain of those that surely gain; else the operating
    /// system's.
    fn outcome(&self) -> TrialOutcome {
        let gains = self.tried.iter().filter(|t| !t.is_out);
        let gains = gains.filter_map(|t| Some((t.candidate, t.gain()?)));
        let sure = gains.filter(|(_, gain)| gain.low() > 0.0);
        let best = sure.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        TrialOutcome {
            chosen: best.map_or(MappingCandidate::Os, |(candidate, _)| candidate),
            results: { self.tried.iter() }
                .map(|t| (t.candidate, t.gain()))
                .collect(),
            rounds: self.rounds,
        }
    }
}

impl MappingTrial {
    fn gain(&self) -> Option<ConfidenceInterval> {
        ConfidenceInterval::from_values(&self.gains)
    }
}

/// Mean logarithm of the ratios of rates; none where a program did nothing.
fn gain(rates: &[f64], reference: &[f64]) -> Option<f64> {
    let ratio = |(&rate, &reference): (&f64, &f64)| {
        (rate > 0.0 && reference > 0.0).then(|| libm::log(rate / reference))
    };
    let pairs = rates.iter().zip(reference);
    let logs: Option<Vec<f64>> = pairs.map(ratio).collect();
    mean(&logs?)
}

impl InstructionSums {
    fn add(&mut self, crowd: &ActivePrograms<'_>, interval_ns: u64) {
        self.instructions.resize(crowd.groups.len(), 0.0);
        for (sum, group) in self.instructions.iter_mut().zip(&crowd.groups) {
            *sum += instructions(group);
        }
        self.time_ns += interval_ns as f64;
    }

    fn rates(self) -> Vec<f64> {
        let time_ns = self.time_ns.max(1.0);
        self.instructions.iter().map(|i| i / time_ns).collect()
    }
}

fn instructions(group: &ActiveProgram<'_>) -> f64 {
    group.sum(Signal::Instructions).unwrap_or(0.0)
}
