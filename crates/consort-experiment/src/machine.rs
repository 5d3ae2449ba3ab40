//! Simulated machines with their energy models.

use crate::error::ExperimentError;
use consort_core::{Sample, SignalOffers, ThreadId};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{
    RunMode, SampleSource, SimulatedProgram, SimulationSettings, ThreadCounts,
};
use std::sync::Arc;

/// A simulated machine with its energy model.
///
/// # Errors
/// Instances without threads or work, an operating system that does not exist.
pub fn build_machine(
    chip: &Arc<Chip>,
    instances: &[SimulatedProgram],
    settings: &SimulationSettings,
    quantum_ns: u64,
    source: Box<dyn SampleSource>,
) -> Result<SimMachine, ExperimentError> {
    let meter = Box::new(EnergyModel::new(chip));
    let chip = Arc::clone(chip);
    Ok(SimMachine::new(
        chip, instances, settings, quantum_ns, meter, source,
    )?)
}

/// A machine under `linux` that nobody watches, and on which every program runs once.
pub(crate) fn build_unwatched_machine(
    chip: &Arc<Chip>,
    instances: &[SimulatedProgram],
    seed: u64,
    quantum_ns: u64,
) -> Result<SimMachine, ExperimentError> {
    let settings = SimulationSettings {
        seed,
        mode: RunMode::Once,
        os: "linux".to_owned(),
        logical_cores: false,
        free_migration: false,
    };
    let quiet = Box::new(NullSampleSource::default());
    build_machine(chip, instances, &settings, quantum_ns, quiet)
}

/// No samples: nobody watches.
#[derive(Debug, Default)]
pub struct NullSampleSource {
    offers: SignalOffers,
}

impl SampleSource for NullSampleSource {
    fn offers(&self) -> &SignalOffers {
        &self.offers
    }

    fn sample(&mut self, _: ThreadId, _: &ThreadCounts, _: u64) -> Sample {
        Sample::default()
    }
}
