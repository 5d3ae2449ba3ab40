//! Simulated machines with their energy models.

use crate::error::ExperimentError;
use consort_core::{Offers, Sample, ThreadId};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{Counts, Instance, RunMode, SampleSource, Settings};
use std::sync::Arc;

/// A simulated machine with its energy model.
///
/// # Errors
/// Instances without threads or work, an operating system that does not exist.
pub fn machine(
    chip: &Arc<Chip>,
    instances: &[Instance],
    settings: &Settings,
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
pub(crate) fn unwatched(
    chip: &Arc<Chip>,
    instances: &[Instance],
    seed: u64,
    quantum_ns: u64,
) -> Result<SimMachine, ExperimentError> {
    let settings = Settings {
        seed,
        mode: RunMode::Once,
        os: "linux".to_owned(),
        logical_cores: false,
        free_migration: false,
    };
    let quiet = Box::new(Quiet::default());
    machine(chip, instances, &settings, quantum_ns, quiet)
}

/// No samples: nobody watches.
#[derive(Debug, Default)]
pub struct Quiet {
    offers: Offers,
}

impl SampleSource for Quiet {
    fn offers(&self) -> &Offers {
        &self.offers
    }

    fn sample(&mut self, _: ThreadId, _: &Counts, _: u64) -> Sample {
        Sample::default()
    }
}
