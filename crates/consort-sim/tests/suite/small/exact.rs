//! Plain energy and exact counters, for tests that look at the engine alone.
//!
//! Unit tests and integration tests both include this file.

use consort_core::{Reading, Sample, Signal, SignalOffers, ThreadId, Tier};
use consort_sim::contention::InstructionActivity;
use consort_sim::engine::{EnergyMeter, SampleSource, ThreadCounts};
use consort_sim::program::MixSpec;

/// One nanojoule per instruction, 2 W per busy core, 1 W per idle one, 5 W for the rest.
pub struct PlainEnergy;

impl EnergyMeter for PlainEnergy {
    fn instruction_j(&self, _: usize, _: &MixSpec, _: &InstructionActivity) -> f64 {
        1e-9
    }

    fn core_w(&self, _: usize, busy: bool) -> f64 {
        if busy { 2.0 } else { 1.0 }
    }

    fn uncore_w(&self) -> f64 {
        5.0
    }
}

/// Exact counts of what any machine can tell.
pub struct Exact(SignalOffers);

impl Default for Exact {
    fn default() -> Self {
        let signals = [Signal::CpuTime, Signal::Cycles, Signal::Instructions];
        Self(signals.map(|s| (s, Tier::Counters)).into_iter().collect())
    }
}

impl SampleSource for Exact {
    fn offers(&self) -> &SignalOffers {
        &self.0
    }

    fn sample(&mut self, _: ThreadId, counts: &ThreadCounts, interval_ns: u64) -> Sample {
        let mut sample = Sample::default();
        let mut set = |signal, raw| {
            sample.set(
                signal,
                Reading::fully_counted(raw, Tier::Counters, interval_ns),
            );
        };
        set(Signal::CpuTime, counts.on_pu_s * 1e9);
        set(Signal::Cycles, counts.cycles);
        set(Signal::Instructions, counts.instructions);
        sample
    }
}
