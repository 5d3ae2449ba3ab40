//! Measures of programs: in the slot that runs, and alone.

use crate::coscheduling::{CoscheduleSlot, ProgramMeasure, ProgramTeam, SlotTrial};
use crate::ids::ProgramId;
use crate::sample::{Observation, Sample};
use crate::signal::Signal;
use std::collections::BTreeMap;

/// Counts that may take turns.
const TURNING: [Signal; 4] = [
    Signal::LlcAccesses,
    Signal::LlcMisses,
    Signal::BusBusyCycles,
    Signal::BusQueueCycles,
];
/// A reading is of the last interval if it was enabled for at most this many times as long. Live
/// intervals and readings do not begin at the same instant, and a reading of the interval before is
/// twice as long.
const FRESH: f64 = 1.5;

/// Sums over a slot so far, from samples of the threads of its programs.
///
/// Counters that take turns count only in some parts of a slot. Their counts are divided by the
/// cycles of the same threads and times, and scaled to all cycles. A reading that is older than the
/// last interval shows nothing of this slot.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotMeter {
    time_ns: f64,
    sums: BTreeMap<ProgramId, ProgramSampleSums>,
}

/// Sums over the threads of a program.
#[derive(Clone, Debug, Default)]
struct ProgramSampleSums {
    instructions: f64,
    cycles: f64,
    energy_j: f64,
    on_pu_ns: f64,
    turning: [MultiplexedCount; 4],
}

/// A count and the cycles in which it was counted.
#[derive(Clone, Copy, Debug, Default)]
struct MultiplexedCount {
    amount: f64,
    cycles: f64,
}

impl SlotMeter {
    /// Time so far, ns.
    pub(super) fn time_ns(&self) -> f64 {
        self.time_ns
    }

    pub(super) fn add_interval(&mut self, seen: &Observation) {
        self.time_ns += seen.interval_ns as f64;
        for thread in seen.threads.iter().chain(&seen.exited) {
            let sums = self.sums.entry(seen.program_of(thread.id)).or_default();
            sums.add_sample(&thread.sample, seen.interval_ns);
        }
    }

    /// Returns the trial of the slot. If energy is not `metered`, it is proportional to the cores
    /// of a program and the time that it has them: 1 W each.
    pub(super) fn trial(&self, slot: &CoscheduleSlot, metered: bool) -> SlotTrial {
        let none = ProgramSampleSums::default();
        let measure = |team: &ProgramTeam| {
            let sums = self.sums.get(&team.program).unwrap_or(&none);
            let mut measure = sums.to_measure();
            (measure.cores, measure.time_ns) = (team.cores, self.time_ns);
            if !metered {
                measure.energy_j = f64::from(team.cores) * self.time_ns / 1e9;
            }
            measure
        };
        SlotTrial {
            measures: slot.teams.iter().map(measure).collect(),
            slot: slot.clone(),
        }
    }
}

impl ProgramSampleSums {
    fn add_sample(&mut self, sample: &Sample, interval_ns: u64) {
        let cycles = sample.get(Signal::Cycles).unwrap_or(0.0);
        self.instructions += sample.get(Signal::Instructions).unwrap_or(0.0);
        self.cycles += cycles;
        self.on_pu_ns += sample.cpu_time_ns();
        let is_idle = sample.activity() <= 0.0;
        // Unknown energy must not look like none.
        let unknown = if is_idle { 0.0 } else { f64::INFINITY };
        self.energy_j += sample.get(Signal::Energy).unwrap_or(unknown);
        for (signal, count) in TURNING.into_iter().zip(&mut self.turning) {
            if let Some(amount) = fresh_count(sample, signal, interval_ns) {
                count.amount += amount;
                count.cycles += cycles;
            }
        }
    }

    fn to_measure(&self) -> ProgramMeasure {
        let [llc_accesses, llc_misses, bus_busy_cycles, bus_queue_cycles] =
            self.turning.map(|count| {
                if count.cycles > 0.0 {
                    count.amount / count.cycles * self.cycles
                } else {
                    0.0
                }
            });
        ProgramMeasure {
            instructions: self.instructions,
            cycles: self.cycles,
            llc_accesses,
            llc_misses,
            bus_busy_cycles,
            bus_queue_cycles,
            energy_j: self.energy_j,
            on_pu_ns: self.on_pu_ns,
            ..ProgramMeasure::default()
        }
    }
}

/// A count of the last interval; `None` if the reading is older.
fn fresh_count(sample: &Sample, signal: Signal, interval_ns: u64) -> Option<f64> {
    let reading = sample.reading(signal)?;
    let of_this = reading.enabled_ns as f64 <= FRESH * interval_ns as f64;
    reading.scaled_value().filter(|_| of_this)
}

/// Measures of programs alone, by program and number of cores.
#[derive(Clone, Debug, Default)]
pub(super) struct AloneMeasureTable(BTreeMap<(ProgramId, u32), ProgramMeasure>);

impl AloneMeasureTable {
    /// Forgets all other programs.
    pub(super) fn retain(&mut self, programs: &[ProgramId]) {
        self.0.retain(|(program, _), _| programs.contains(program));
    }

    pub(super) fn forget(&mut self, program: ProgramId) {
        self.0.retain(|(other, _), _| *other != program);
    }

    /// Records the trial of a slot of one program.
    pub(super) fn record_trial(&mut self, trial: &SlotTrial) {
        if let ([team], [measure]) = (&trial.slot.teams[..], &trial.measures[..]) {
            self.0.insert((team.program, team.cores), *measure);
        }
    }

    /// The next slot to sample: every program on the first number of `cores`, then on the others.
    pub(super) fn next_missing_slot(
        &self,
        programs: &[ProgramId],
        cores: &[u32],
    ) -> Option<CoscheduleSlot> {
        for &cores in cores {
            for &program in programs {
                if !self.0.contains_key(&(program, cores)) {
                    return Some(CoscheduleSlot::alone(program, cores));
                }
            }
        }
        None
    }

    /// Trial of a slot of one program that has been sampled.
    pub(super) fn sampled_trial(&self, slot: &CoscheduleSlot) -> Option<SlotTrial> {
        let [team] = slot.teams[..] else {
            return None;
        };
        let measure = self.get(team.program, team.cores)?;
        Some(SlotTrial {
            slot: slot.clone(),
            measures: vec![*measure],
        })
    }

    pub(super) fn get(&self, program: ProgramId, cores: u32) -> Option<&ProgramMeasure> {
        self.0.get(&(program, cores))
    }

    /// Returns true if a program's throughput on all cores is within `alpha` of as many times that
    /// on one. The source does not say how it knows; here both are measured.
    pub(super) fn is_near_linear(&self, program: ProgramId, cores: u32, alpha: f64) -> bool {
        let throughput = |cores| {
            let measure = self.get(program, cores);
            measure.map_or(0.0, ProgramMeasure::throughput)
        };
        let linear = throughput(1) * f64::from(cores);
        linear > 0.0 && throughput(cores) >= linear * (1.0 - alpha)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{seen, thread};
    use super::*;
    use crate::sample::Reading;
    use crate::signal::Tier;

    const SECOND_NS: u64 = 1_000_000_000;

    fn slot(cores: u32) -> CoscheduleSlot {
        CoscheduleSlot::alone(ProgramId(1), cores)
    }

    #[test]
    fn unmetered_energy_is_cores_by_time() {
        let mut meter = SlotMeter::default();
        let values = [(Signal::Instructions, 2e9), (Signal::Cycles, 4e9)];
        for _ in 0..2 {
            meter.add_interval(&seen(vec![thread(1, 1, &values), thread(1, 2, &values)]));
        }
        let measure = meter.trial(&slot(4), false).measures[0];
        assert_eq!((measure.instructions, measure.cycles), (8e9, 16e9));
        assert_eq!((measure.time_ns, measure.energy_j), (2e9, 8.0));
    }

    #[test]
    fn multiplexed_counts_are_scaled_and_stale_ones_ignored() {
        let mut meter = SlotMeter::default();
        let cycles = [(Signal::Cycles, 4e9)];
        let mut first = thread(1, 1, &[(Signal::Cycles, 4e9), (Signal::LlcMisses, 1e6)]);
        meter.add_interval(&seen(vec![first.clone()]));
        first = thread(1, 1, &cycles);
        let old = Reading {
            raw: 4e6,
            tier: Tier::Counters,
            enabled_ns: 2 * SECOND_NS,
            running_ns: SECOND_NS,
        };
        first.sample.set(Signal::LlcMisses, old);
        meter.add_interval(&seen(vec![first]));
        assert_eq!(meter.trial(&slot(1), false).measures[0].llc_misses, 2e6);
    }

    #[test]
    fn missing_metered_energy_is_infinite() {
        let mut meter = SlotMeter::default();
        meter.add_interval(&seen(vec![thread(1, 1, &[(Signal::Cycles, 1e9)])]));
        let energy = |metered| meter.trial(&slot(1), metered).measures[0].energy_j;
        assert_eq!((energy(true), energy(false)), (f64::INFINITY, 1.0));
    }

    #[test]
    fn who_was_not_seen_did_nothing() {
        let trial = SlotMeter::default().trial(&slot(2), false);
        assert_eq!(trial.measures[0].instructions, 0.0);
    }
}
