//! Slots in turn, how programs fare in them, and changes of phase.

use super::measures::AloneMeasureTable;
use crate::coscheduling::{
    CoscheduleSlot, ProgramMeasure, SlotTrial, fairness, speedup, thread_throughput_gain,
};
use crate::ids::ProgramId;
use std::collections::BTreeMap;
use std::fmt;

/// Slots that run one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotRotation {
    slots: Vec<CoscheduleSlot>,
    /// Index of the slot that runs.
    at: usize,
    /// Trial of each slot when it last ran.
    last: Vec<Option<SlotTrial>>,
    phases: PhaseDetector,
    /// Quanta that slots have run.
    quanta: u64,
}

/// Figures of a program in its slot, relative to the gang.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GangComparison {
    /// Energy-delay over that of the gang.
    pub(super) energy_delay: f64,
    /// Local speedup.
    pub(super) speedup: f64,
}

impl SlotRotation {
    /// Begins with the first slot that has a program after this one, or else with the first.
    pub(super) fn new(slots: Vec<CoscheduleSlot>, after: Option<ProgramId>) -> Self {
        let is_next =
            |slot: &CoscheduleSlot| slot.teams.iter().any(|team| Some(team.program) > after);
        Self {
            last: vec![None; slots.len()],
            at: slots.iter().position(is_next).unwrap_or(0),
            slots,
            ..Self::default()
        }
    }

    /// The slot that runs; `None` without programs.
    pub(super) fn slot(&self) -> Option<&CoscheduleSlot> {
        self.slots.get(self.at)
    }

    pub(super) fn slots(&self) -> &[CoscheduleSlot] {
        &self.slots
    }

    /// Records the trial of the slot and proceeds to the next. Returns true if a round is complete.
    pub(super) fn finish_slot(&mut self, trial: SlotTrial) -> bool {
        self.quanta += u64::from(trial.slot.quanta());
        if let Some(last) = self.last.get_mut(self.at) {
            *last = Some(trial);
        }
        self.at = (self.at + 1) % self.slots.len().max(1);
        self.at == 0
    }

    /// Returns true if some programs share a slot.
    pub(super) fn has_shared_slots(&self) -> bool {
        self.slots.iter().any(|slot| slot.teams.len() > 1)
    }

    /// Figures of each program when its slot last ran, relative to the gang. Programs that were not
    /// measured are left out.
    pub(super) fn compare_with_gang(
        &self,
        gang: &AloneMeasureTable,
        cores: u32,
    ) -> BTreeMap<ProgramId, GangComparison> {
        let mut compared = BTreeMap::new();
        for trial in self.last.iter().flatten() {
            let quanta = trial.slot.quanta();
            for (team, now) in trial.slot.teams.iter().zip(&trial.measures) {
                let Some(before) = gang.get(team.program, cores) else {
                    continue;
                };
                let fair = fairness((now.cores, quanta), (before.cores, 1));
                let comparison = GangComparison {
                    energy_delay: now.energy_delay(quanta) / before.energy_delay(1),
                    speedup: speedup(fair, thread_throughput_gain(now, before)),
                };
                compared.insert(team.program, comparison);
            }
        }
        compared
    }

    /// Overall energy-delay over that of the gang: the mean over programs; `None` unless all were
    /// measured.
    pub(super) fn overall_energy_delay(
        &self,
        fares: &BTreeMap<ProgramId, GangComparison>,
    ) -> Option<f64> {
        let programs: usize = self.slots.iter().map(|slot| slot.teams.len()).sum();
        if fares.is_empty() || fares.len() != programs {
            return None;
        }
        let sum: f64 = fares.values().map(|f| f.energy_delay).sum();
        Some(sum / programs as f64)
    }

    /// Returns a program that is in another phase than when it was measured, if any; see
    /// [`PhaseDetector::find_shift`].
    pub(super) fn find_phase_shift(
        &mut self,
        threshold: f64,
        gang: &AloneMeasureTable,
        cores: u32,
    ) -> Option<(ProgramId, PhaseShift)> {
        let now = self.last.iter().flatten().flat_map(|trial| {
            let teams = trial.slot.teams.iter().zip(&trial.measures);
            teams.map(|(team, measure)| (team.program, measure))
        });
        self.phases.find_shift(now, (gang, cores), threshold)
    }

    /// Quanta that slots have run.
    pub(super) fn quanta(&self) -> u64 {
        self.quanta
    }
}

/// Behaviour of a program in the first round, with which later rounds are compared.
#[derive(Clone, Copy, Debug)]
struct PhaseBaseline {
    miss_rate: f64,
    busy_share: f64,
}

/// Detects changes of phase, after which the measures of a program are no longer valid.
///
/// The source takes a shift of the LLC miss rate for one. Programs that divide their work have
/// another kind: serial sections, above all at their beginning, in which one core is busy whatever
/// they are given. A program sampled there looks as if it did not scale. So the share of its cores
/// that a program keeps busy in its slot is compared from round to round, too. And a program that
/// keeps more cores busy in its slot than it did with all of them was sampled in another phase.
#[derive(Clone, Debug, Default)]
struct PhaseDetector(BTreeMap<ProgramId, PhaseBaseline>);

/// Kind and size of a shift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PhaseShift {
    /// Misses of the LLC per access.
    MissRate(f64),
    /// The share of its cores that the program keeps busy.
    Busy(f64),
    /// Cores that it keeps busy, beyond those of its sample.
    BeyondSample(f64),
}

impl PhaseDetector {
    /// Finds a program that has shifted by more than `threshold`, a share, compared with the first
    /// round and with its sample on all `cores`. The round that ends now is the first one for a
    /// program without a baseline.
    fn find_shift<'a>(
        &mut self,
        now: impl Iterator<Item = (ProgramId, &'a ProgramMeasure)>,
        (samples, cores): (&AloneMeasureTable, u32),
        threshold: f64,
    ) -> Option<(ProgramId, PhaseShift)> {
        let mut found = None;
        for (id, measure) in now {
            // For all programs, even after one has been found, so that each gets its baseline.
            let first = *self.0.entry(id).or_insert_with(|| PhaseBaseline {
                miss_rate: measure.llc_miss_rate(),
                busy_share: busy_share(measure),
            });
            let sampled = samples.get(id, cores);
            found = found.or_else(|| Some((id, first.find_shift(measure, sampled, threshold)?)));
        }
        found
    }
}

impl PhaseBaseline {
    fn find_shift(
        &self,
        now: &ProgramMeasure,
        sampled: Option<&ProgramMeasure>,
        threshold: f64,
    ) -> Option<PhaseShift> {
        let more = sampled.map_or(0.0, |alone| now.busy_cores() - alone.busy_cores());
        let cores = f64::from(now.cores);
        let miss_rate = now.llc_miss_rate() - self.miss_rate;
        let all = [
            (PhaseShift::MissRate(miss_rate), 1.0),
            (PhaseShift::Busy(busy_share(now) - self.busy_share), 1.0),
            // Fewer busy cores than with all cores are no shift.
            (PhaseShift::BeyondSample(more.max(0.0)), cores),
        ];
        let beyond = |(shift, scale): &(PhaseShift, f64)| shift.size().abs() > threshold * scale;
        all.into_iter().find(beyond).map(|(shift, _)| shift)
    }
}

impl PhaseShift {
    fn size(self) -> f64 {
        match self {
            Self::MissRate(by) | Self::Busy(by) | Self::BeyondSample(by) => by,
        }
    }
}

impl fmt::Display for PhaseShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = self.size();
        match self {
            Self::MissRate(_) => write!(f, "the miss rate has shifted by {by:.3}"),
            Self::Busy(_) => write!(
                f,
                "the share of its cores that are busy has shifted by {by:.3}"
            ),
            Self::BeyondSample(_) => write!(
                f,
                "{by:.1} cores more are busy than when it had all to itself"
            ),
        }
    }
}

fn busy_share(measure: &ProgramMeasure) -> f64 {
    measure.busy_cores() / f64::from(measure.cores.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coscheduling::{CoscheduleSlot, SlotTrial};

    const PROGRAM: ProgramId = ProgramId(1);

    /// Measure of a second on four cores.
    fn measure(busy: f64, miss_rate: f64) -> ProgramMeasure {
        ProgramMeasure {
            llc_accesses: 1.0,
            llc_misses: miss_rate,
            on_pu_ns: busy * 1e9,
            cores: 4,
            time_ns: 1e9,
            ..ProgramMeasure::default()
        }
    }

    fn samples(busy: f64) -> AloneMeasureTable {
        let mut samples = AloneMeasureTable::default();
        samples.record_trial(&SlotTrial {
            slot: CoscheduleSlot::alone(PROGRAM, 8),
            measures: vec![ProgramMeasure {
                cores: 8,
                ..measure(busy, 0.2)
            }],
        });
        samples
    }

    fn shift(sampled: f64, rounds: &[ProgramMeasure]) -> Option<PhaseShift> {
        let (mut habits, samples) = (PhaseDetector::default(), samples(sampled));
        let look =
            |m: &ProgramMeasure| habits.find_shift([(PROGRAM, m)].into_iter(), (&samples, 8), 0.1);
        rounds
            .iter()
            .filter_map(look)
            .last()
            .map(|(_, shift)| shift)
    }

    #[test]
    fn unchanged_program_has_not_shifted() {
        let rounds = [measure(3.0, 0.2), measure(3.2, 0.25)];
        assert_eq!(shift(6.0, &rounds), None);
    }

    #[test]
    fn a_miss_rate_that_shifts_is_a_phase() {
        let rounds = [measure(3.0, 0.2), measure(3.0, 0.5)];
        assert_eq!(shift(6.0, &rounds), Some(PhaseShift::MissRate(0.3)));
    }

    #[test]
    fn a_serial_section_that_begins_is_a_phase() {
        let rounds = [measure(4.0, 0.2), measure(1.0, 0.2)];
        assert_eq!(shift(6.0, &rounds), Some(PhaseShift::Busy(-0.75)));
    }

    #[test]
    fn sample_of_serial_section_shows_at_once() {
        assert_eq!(
            shift(1.0, &[measure(3.0, 0.2)]),
            Some(PhaseShift::BeyondSample(2.0))
        );
    }
}
