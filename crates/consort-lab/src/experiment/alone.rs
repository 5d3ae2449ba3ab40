//! What each program does alone, which sets its work and its reference.

use super::error::ExperimentError;
use super::run::{Quiet, machine};
use consort_core::Machine;
use consort_sim::chip::Chip;
use consort_sim::engine::{Instance, RunMode, Settings};
use consort_sim::workload;
use std::sync::Arc;

/// The work of one instance and the time that it takes alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Instructions, of all threads where the program divides its work, else of each.
    pub instructions: f64,
    /// Time that they take alone on the machine, s.
    pub alone_s: f64,
}

/// Instructions that no program does within a run; it only sets when a run would end.
const ENDLESS: f64 = 1e18;

/// Runs an instance alone under `linux` for `seconds`; what it does becomes its work.
///
/// # Errors
/// A program that makes no progress in that time.
pub fn measure_alone(
    chip: &Arc<Chip>,
    instance: &workload::Instance,
    seconds: f64,
    seed: u64,
) -> Result<Work, ExperimentError> {
    let settings = Settings {
        seed,
        mode: RunMode::Once,
        os: "linux".to_owned(),
        logical_cores: false,
    };
    let alone = Instance {
        program: Arc::clone(&instance.program),
        threads: instance.threads,
        instructions: ENDLESS,
        start_ms: 0.0,
    };
    let quantum_ns = (seconds * 1e9) as u64;
    let mut machine = machine(
        chip,
        &[alone],
        &settings,
        quantum_ns,
        Box::new(Quiet::default()),
    )?;
    machine.observe()?;
    let done = machine.results().first().map_or(0.0, |r| r.instructions);
    let divided = instance
        .program
        .threads
        .as_ref()
        .is_none_or(|t| t.divide_work);
    let shares = if divided {
        1.0
    } else {
        f64::from(instance.threads)
    };
    if done <= 0.0 {
        return Err(ExperimentError::NoProgress {
            program: instance.name.clone(),
            seconds,
        });
    }
    Ok(Work {
        instructions: done / shares,
        alone_s: seconds,
    })
}
