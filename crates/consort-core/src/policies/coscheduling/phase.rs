//! Changes of phase, after which the measures of a program no longer tell of it.
//!
//! The source takes a shift of the LLC miss rate for one. Programs that divide their work have
//! another kind: serial sections, at their beginning above all, in which one core is busy whatever
//! they are given. A program sampled there looks as if it did not scale, so the share of its cores
//! that it keeps busy is looked at, too, in its slot from round to round; and a slot in which it
//! keeps more cores busy than it did with all of them shows at once that its sample is of another
//! phase.

use super::alone_measure_table::AloneMeasureTable;
use crate::coscheduling::ProgramMeasure;
use crate::ids::ProgramId;
use std::collections::BTreeMap;
use std::fmt;

/// Behaviour of a program in the first round, with which later rounds are compared.
#[derive(Clone, Copy, Debug)]
struct PhaseBaseline {
    miss_rate: f64,
    busy_share: f64,
}

/// Behaviour of each program in the first round.
#[derive(Clone, Debug, Default)]
pub(super) struct PhaseDetector(BTreeMap<ProgramId, PhaseBaseline>);

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

impl PhaseBaseline {
    fn from_measure(measure: &ProgramMeasure) -> Self {
        Self {
            miss_rate: measure.llc_miss_rate(),
            busy_share: busy_share(measure),
        }
    }
}

impl PhaseDetector {
    /// A program that has shifted by more than `threshold`, a share; compared with the first round,
    /// which is the one that ends now where there was none, and with its sample on all `cores`.
    pub(super) fn find_shift<'a>(
        &mut self,
        now: impl Iterator<Item = (ProgramId, &'a ProgramMeasure)>,
        (samples, cores): (&AloneMeasureTable, u32),
        threshold: f64,
    ) -> Option<(ProgramId, PhaseShift)> {
        let mut found = None;
        for (id, measure) in now {
            let first = *self
                .0
                .entry(id)
                .or_insert_with(|| PhaseBaseline::from_measure(measure));
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
        let all = [
            (
                PhaseShift::MissRate(now.llc_miss_rate() - self.miss_rate),
                1.0,
            ),
            (PhaseShift::Busy(busy_share(now) - self.busy_share), 1.0),
            // Fewer cores busy than with all is how it should be.
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

/// Writes the shift as a report says it.
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
    fn a_program_that_goes_on_as_before_has_not_shifted() {
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
    fn a_sample_of_a_serial_section_shows_in_the_first_round() {
        assert_eq!(
            shift(1.0, &[measure(3.0, 0.2)]),
            Some(PhaseShift::BeyondSample(2.0))
        );
    }
}
