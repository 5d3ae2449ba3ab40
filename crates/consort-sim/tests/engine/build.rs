//! Machines with programs from the presets, exact counters and plain energy.

use consort_core::{Machine, Offers, Reading, Sample, Signal, ThreadId, Tier};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::contention::Flow;
use consort_sim::engine::{Counts, EnergyMeter, Instance, RunMode, SampleSource, Settings};
use consort_sim::program::{MixSpec, presets};
use std::sync::Arc;

/// Tells instructions and time exactly.
pub struct Exact(Offers);

impl Default for Exact {
    fn default() -> Self {
        let signals = [Signal::CpuTime, Signal::Instructions];
        Self(signals.map(|s| (s, Tier::Counters)).into_iter().collect())
    }
}

impl SampleSource for Exact {
    fn offers(&self) -> &Offers {
        &self.0
    }

    fn sample(&mut self, _: ThreadId, counts: &Counts, interval_ns: u64) -> Sample {
        let mut sample = Sample::default();
        let whole = |raw| Reading::whole(raw, Tier::Counters, interval_ns);
        sample.set(Signal::CpuTime, whole(counts.on_pu_s * 1e9));
        sample.set(Signal::Instructions, whole(counts.instructions));
        sample
    }
}

/// Every instruction costs the same and every core draws the same.
pub struct Plain;

impl EnergyMeter for Plain {
    fn instruction_j(&self, _: usize, _: &MixSpec, _: &Flow) -> f64 {
        1e-9
    }

    fn core_w(&self, _: usize, busy: bool) -> f64 {
        if busy { 2.0 } else { 1.0 }
    }

    fn uncore_w(&self) -> f64 {
        5.0
    }
}

/// `(program, threads)` each with `ginstr` 10^9 instructions.
pub fn instances(programs: &[(&str, u32)], ginstr: f64) -> Vec<Instance> {
    let instance = |&(name, threads): &(&str, u32)| Instance {
        program: Arc::new(presets::find(name).unwrap()),
        threads,
        instructions: ginstr * 1e9,
        start_ms: 0.0,
    };
    programs.iter().map(instance).collect()
}

pub fn machine(
    name: &str,
    smt: Option<u32>,
    os: &str,
    mode: RunMode,
    instances: &[Instance],
    quantum_ns: u64,
) -> SimMachine {
    let spec = consort_sim::machine::presets::find(name).unwrap();
    let chip = Arc::new(Chip::new(&spec, smt).unwrap());
    let settings = Settings {
        seed: 42,
        mode,
        os: os.to_owned(),
        logical_cores: false,
    };
    let (meter, source) = (Box::new(Plain), Box::new(Exact::default()));
    SimMachine::new(chip, instances, &settings, quantum_ns, meter, source).unwrap()
}

/// Observes to the end; the number of quanta.
pub fn finish(machine: &mut SimMachine) -> u64 {
    let mut quanta = 0;
    while machine.observe().unwrap().is_some() {
        quanta += 1;
        assert!(quanta < 1_000_000, "the run does not end");
    }
    quanta
}
