//! Trials of mappings on the programs themselves.
//!
//! In each round, every mapping that is still in question has a few quanta. Progress is compared
//! with the operating system's mapping within the same round, so that slow changes do not count. A
//! mapping that is clearly worse drops out. The number of rounds is bounded, so that trying costs a
//! bounded time.
//!
//! Trials also show two characteristics that one observation cannot: the sharing of data among
//! siblings, and the excess of their prefetcher ([`sharing_and_excess`]).

use super::active_programs::{ActiveProgram, ActivePrograms};
use super::candidate::{INT, MappingCandidate, SPR};
use crate::sample::ThreadObservation;
use crate::signal::Signal;
use crate::stats::{ConfidenceInterval, mean};

/// Quanta after a change that are not counted: caches fill, run queues even out.
const SETTLING: u32 = 1;
/// Quanta that count.
const MEASURED: u32 = 2;
/// Rounds from which on a mapping may drop out or be chosen.
const ROUNDS_TO_JUDGE: usize = 3;
/// Loss, as a logarithm, with which a mapping drops out after one round: three times what
/// programs vary by from one quantum to the next (10 percent, as the described programs do).
const LOST_AT_ONCE: f64 = 0.3;
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

impl MappingTrial {
    fn gain(&self) -> Option<ConfidenceInterval> {
        ConfidenceInterval::from_values(&self.gains)
    }
}

/// The trials of one load.
#[derive(Clone, Debug)]
pub(super) struct MappingTrials {
    /// The first one is the operating system's.
    tried: Vec<MappingTrial>,
    /// Index of the mapping that is on.
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
    /// Gain over the operating system of each, as a share; `None` if it was not measured.
    pub(super) results: Vec<(MappingCandidate, Option<ConfidenceInterval>)>,
    /// Rounds that the trials took.
    pub(super) rounds: usize,
}

impl MappingTrials {
    /// Trials of these mappings and the operating system's.
    pub(super) fn new(candidates: &[MappingCandidate], groups: usize) -> Self {
        let others = candidates.iter().filter(|&&c| c != MappingCandidate::Os);
        let all = std::iter::once(&MappingCandidate::Os).chain(others);
        let trial = |&candidate: &MappingCandidate| MappingTrial {
            candidate,
            gains: Vec::new(),
            rates: None,
            seen: vec![TrafficRates::default(); groups],
            is_out: false,
        };
        Self {
            tried: all.map(trial).collect(),
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

    /// The present round, from 1, and the greatest number of rounds.
    pub(super) fn round(&self) -> (usize, usize) {
        (self.rounds + 1, MOST_ROUNDS)
    }

    /// Counts of misses under each mapping, by program.
    pub(super) fn traffic_rates(
        &self,
    ) -> impl Iterator<Item = (MappingCandidate, &[TrafficRates])> {
        self.tried.iter().map(|t| (t.candidate, t.seen.as_slice()))
    }

    /// Records the quantum that has just ended; returns the outcome once the trials are over.
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
        let sum = &mut self.sum;
        sum.instructions.resize(crowd.groups.len(), 0.0);
        for (sum, group) in sum.instructions.iter_mut().zip(&crowd.groups) {
            *sum += group.sum(Signal::Instructions).unwrap_or(0.0);
        }
        sum.time_ns += interval_ns as f64;
        if self.quanta < SETTLING + MEASURED {
            return None;
        }
        let sum = std::mem::take(sum);
        let time_ns = sum.time_ns.max(1.0);
        tried.rates = Some(sum.instructions.iter().map(|i| i / time_ns).collect());
        self.quanta = 0;
        self.advance_candidate()
    }

    /// Forgets the sums of an interrupted quantum, which belong to no single mapping.
    pub(super) fn interrupt(&mut self) {
        self.quanta = 0;
        self.sum = InstructionSums::default();
    }

    fn advance_candidate(&mut self) -> Option<TrialOutcome> {
        let mut after = self.tried.iter().skip(self.at + 1);
        if let Some(ahead) = after.position(|t| !t.is_out) {
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

    /// Returns true if the trials are over. They end when the leader surely gains, because further
    /// rounds cost more than a wrong order among mappings that gain.
    fn is_over(&self) -> bool {
        let left = self.tried[1..].iter().filter(|t| !t.is_out);
        let gains = left.filter_map(MappingTrial::gain);
        let leader = gains.max_by(|a, b| a.mean.total_cmp(&b.mean));
        let judged = self.rounds >= ROUNDS_TO_JUDGE;
        leader.is_none_or(|leader| judged && leader.low() > 0.0) || self.rounds >= MOST_ROUNDS
    }

    /// Chooses the mapping with the highest gain among the ones that surely gain, else the operating
    /// system's.
    fn outcome(&self) -> TrialOutcome {
        let left = self.tried.iter().filter(|t| !t.is_out);
        let gains = left.filter_map(|t| Some((t.candidate, t.gain()?)));
        let sure = gains.filter(|(_, gain)| gain.low() > 0.0);
        let best = sure.max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
        let all = self.tried.iter();
        TrialOutcome {
            chosen: best.map_or(MappingCandidate::Os, |(candidate, _)| candidate),
            results: all.map(|t| (t.candidate, t.gain())).collect(),
            rounds: self.rounds,
        }
    }
}

/// Mean logarithm of the ratios of rates; `None` if a program executed no instructions.
fn gain(rates: &[f64], reference: &[f64]) -> Option<f64> {
    let mut logs = Vec::new();
    for (&rate, &reference) in rates.iter().zip(reference) {
        // Written so that NaN is no progress either.
        if !(rate > 0.0 && reference > 0.0) {
            return None;
        }
        logs.push(libm::log(rate / reference));
    }
    mean(&logs)
}

/// Misses and cycles on the bus per instruction, as counted under one mapping.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TrafficRates {
    misses: PerInstructionRate,
    bus: PerInstructionRate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct PerInstructionRate {
    part: f64,
    instructions: f64,
}

impl TrafficRates {
    fn add(&mut self, group: &ActiveProgram<'_>) {
        for thread in &group.members {
            self.misses.add(thread, Signal::LlcMisses);
            self.bus.add(thread, Signal::BusBusyCycles);
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            misses: self.misses.plus(other.misses),
            bus: self.bus.plus(other.bus),
        }
    }
}

impl PerInstructionRate {
    /// Adds the counts of a thread. A multiplexed reading is left out, because it is not only of
    /// the last quantum.
    fn add(&mut self, thread: &ThreadObservation, signal: Signal) {
        let fresh = thread.sample.reading(signal);
        let fresh = fresh.filter(|reading| !reading.is_multiplexed());
        let instructions = thread.sample.get(Signal::Instructions);
        if let Some((reading, instructions)) = fresh.zip(instructions) {
            self.part += reading.raw;
            self.instructions += instructions;
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            part: self.part + other.part,
            instructions: self.instructions + other.instructions,
        }
    }

    fn value(self) -> Option<f64> {
        (self.instructions > 0.0 && self.part > 0.0).then(|| self.part / self.instructions)
    }
}

/// Growth of misses when siblings are apart, relative to the misses, and that of the bus's use
/// beyond it; `None` unless trials measured siblings both together and apart.
pub(super) fn sharing_and_excess<'a>(
    seen: impl Iterator<Item = (MappingCandidate, &'a TrafficRates)>,
) -> (Option<f64>, Option<f64>) {
    let (mut together, mut apart) = (TrafficRates::default(), TrafficRates::default());
    for (candidate, seen) in seen {
        match candidate {
            // Unknown for the operating system's mapping.
            MappingCandidate::Os => {}
            MappingCandidate::Placed {
                inside: SPR | INT, ..
            } => apart = apart.plus(seen),
            MappingCandidate::Placed { .. } => together = together.plus(seen),
        }
    }
    let growth = |rate: fn(&TrafficRates) -> PerInstructionRate| {
        Some(rate(&apart).value()? / rate(&together).value()?)
    };
    let misses = growth(|s| s.misses);
    let bus = growth(|s| s.bus);
    let excess = bus.map(|bus| bus / misses.unwrap_or(1.0).max(1.0));
    let beyond_one = |ratio: f64| (ratio - 1.0).max(0.0);
    (misses.map(beyond_one), excess.map(beyond_one))
}

#[cfg(test)]
mod tests {
    use super::super::candidate::{ISO, ProgramDivision};
    use super::*;

    /// Counts of a billion instructions with so many misses and cycles on the bus.
    fn seen(misses: f64, bus: f64) -> TrafficRates {
        let ratio = |part| PerInstructionRate {
            part,
            instructions: 1e9,
        };
        TrafficRates {
            misses: ratio(misses),
            bus: ratio(bus),
        }
    }

    fn learnt(iso: &TrafficRates, int: &TrafficRates) -> (Option<f64>, Option<f64>) {
        let placed = |inside| MappingCandidate::Placed {
            nodes: ProgramDivision::Together,
            inside,
        };
        let os = (MappingCandidate::Os, iso);
        let all = [os, (placed(ISO), iso), (placed(INT), int)];
        sharing_and_excess(all.into_iter())
    }

    #[test]
    fn added_misses_are_sharing_and_other_lines_excess() {
        // Half as many misses again, and the bus busy three times as long: twice beyond that.
        let (sharing, excess) = learnt(&seen(1e6, 1e7), &seen(1.5e6, 3e7));
        assert_eq!((sharing, excess), (Some(0.5), Some(1.0)));
        // Fewer misses apart are no sharing.
        let (sharing, excess) = learnt(&seen(1e6, 1e7), &seen(0.5e6, 1e7));
        assert_eq!((sharing, excess), (Some(0.0), Some(0.0)));
        assert_eq!(learnt(&seen(0.0, 0.0), &seen(1.0, 1.0)), (None, None));
    }
}
