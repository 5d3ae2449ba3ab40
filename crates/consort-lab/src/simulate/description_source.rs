//! Sources of the machines and programs of studies.

use super::programs;
use consort_sim::chip::Chip;
use consort_sim::machine::MachineRef;
use consort_sim::program::{ProgramSpec, presets};
use consort_sim::workload::{DescriptionFile, LoadError, ProgramSource};
use std::sync::Arc;

/// Source of machines and programs: the presets, or a user's folders as well.
pub trait DescriptionSource: ProgramSource + Sync {
    /// The machine that a text names, laid out.
    ///
    /// # Errors
    /// Machines that are unknown or cannot be read, in one line.
    fn load_chip(&self, text: &str) -> Result<Arc<Chip>, LoadError>;
}

/// The machines and programs that come with Consort.
#[derive(Clone, Copy, Debug, Default)]
pub struct Presets;

impl DescriptionSource for Presets {
    fn load_chip(&self, text: &str) -> Result<Arc<Chip>, LoadError> {
        let reported = |error: &dyn std::error::Error| LoadError(error.to_string());
        let reference: MachineRef = text.parse().map_err(|e| reported(&e))?;
        let loaded = reference.load(&[]).map_err(|e| reported(&e))?;
        let chip = Chip::new(&loaded.spec, loaded.smt).map_err(|e| reported(&e))?;
        Ok(Arc::new(chip))
    }
}

impl ProgramSource for Presets {
    fn find(&self, name: &str) -> Result<Option<Arc<ProgramSpec>>, LoadError> {
        if !presets::names().any(|known| known == name) {
            return Ok(None);
        }
        let found = programs::find(name).map_err(|error| LoadError(error.to_string()))?;
        Ok(Some(found))
    }

    fn suite(&self, name: &str) -> Result<Vec<Arc<ProgramSpec>>, LoadError> {
        programs::suite(name, usize::MAX).map_err(|error| LoadError(error.to_string()))
    }

    fn is_file(&self, _: &str) -> bool {
        false
    }

    fn load(&self, path: &str) -> Result<DescriptionFile, LoadError> {
        Err(LoadError(format!("{path}: give the name of a preset")))
    }

    fn programs(&self) -> Vec<String> {
        presets::names().map(str::to_owned).collect()
    }

    fn suites(&self) -> Vec<String> {
        let suites = presets::suites().unwrap_or_default();
        suites.keys().map(ToString::to_string).collect()
    }
}
