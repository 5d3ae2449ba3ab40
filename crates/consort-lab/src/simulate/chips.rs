//! Machines of studies, whole and reduced to one core, and the sources of machines and programs.

use super::{part_error, programs};
use crate::study::StudyError;
use consort_experiment::watch::CoreKind;
use consort_sim::chip::Chip;
use consort_sim::machine::presets as machines;
use consort_sim::machine::{LoadedMachine, MachineError, MachineRef, MachineSpec, Quantity};
use consort_sim::program::{ProgramSpec, presets};
use consort_sim::workload::{DescriptionFile, LoadError, ProgramSource};
use std::sync::Arc;

/// Quantities that events for misses of the L2 count: misses of demand, data for prefetchers as well,
/// code as well.
const L2_EVENTS: [(Quantity, &str); 3] = [
    (Quantity::L2Misses, "l2-misses"),
    (Quantity::L2DataMisses, "l2-data-misses"),
    (Quantity::LlcAccesses, "llc-accesses"),
];

/// The quantity that a chip's event for misses of the L2 counts, the narrowest, and its name.
pub(crate) fn l2_event(spec: &MachineSpec) -> (Quantity, &'static str) {
    let has = |quantity| { spec.pmu.events.iter() }.any(|event| event.counts == quantity);
    let mut events = L2_EVENTS.into_iter();
    events
        .find(|(quantity, _)| has(*quantity))
        .unwrap_or(L2_EVENTS[2])
}

/// Source of machines and programs: the presets, or a user's folders as well.
pub trait DescriptionSource: ProgramSource + Sync {
    /// The machine that a text names.
    ///
    /// # Errors
    /// Machines that are unknown or cannot be read.
    fn find_machine(&self, text: &str) -> Result<LoadedMachine, MachineError>;

    /// The machine that a text names, laid out.
    ///
    /// # Errors
    /// Machines that are unknown or cannot be read, in one line.
    fn load_chip(&self, text: &str) -> Result<Arc<Chip>, LoadError> {
        let loaded = self.find_machine(text);
        let loaded = loaded.map_err(|error| LoadError(error.to_string()))?;
        let chip = Chip::new(&loaded.spec, loaded.smt);
        Ok(Arc::new(
            chip.map_err(|error| LoadError(error.to_string()))?,
        ))
    }
}

/// The machines and programs that come with Consort.
#[derive(Clone, Copy, Debug, Default)]
pub struct Presets;

impl DescriptionSource for Presets {
    fn find_machine(&self, text: &str) -> Result<LoadedMachine, MachineError> {
        let reference: MachineRef = text.parse()?;
        reference.load(&[])
    }
}

impl ProgramSource for Presets {
    fn find(&self, name: &str) -> Result<Option<Arc<ProgramSpec>>, LoadError> {
        if !presets::names().any(|known| known == name) {
            return Ok(None);
        }
        let found = programs::find(name).map(Some);
        found.map_err(|error| LoadError(error.to_string()))
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

/// The description of a machine that comes with Consort.
pub(crate) fn machine_spec(machine: &str) -> Result<MachineSpec, StudyError> {
    machines::find(machine).map_err(part_error(machine))
}

/// A machine that comes with Consort.
pub(crate) fn chip(machine: &str) -> Result<Arc<Chip>, StudyError> {
    full_chip(&machine_spec(machine)?)
}

/// The machine of a description.
pub(crate) fn full_chip(spec: &MachineSpec) -> Result<Arc<Chip>, StudyError> {
    let chip = Chip::new(spec, None).map_err(part_error(&spec.name))?;
    Ok(Arc::new(chip))
}

/// The machine with its first core of a kind alone in use; LLC and memory are as they were.
pub(crate) fn single_core_chip(chip: &Chip, kind: CoreKind) -> Result<Arc<Chip>, StudyError> {
    let pus = 0..chip.places().len();
    let first = pus
        .into_iter()
        .find(|&pu| CoreKind::from_pu(chip, pu) == kind);
    let core = first.map(|pu| chip.places()[pu].core);
    let one = Chip::with_cores(chip.spec(), None, &|number| Some(number) == core);
    Ok(Arc::new(one.map_err(part_error(&chip.spec().name))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_core_keeps_the_machine_caches() {
        let group = chip("acmp-1+3").unwrap();
        for kind in [CoreKind::Large, CoreKind::Small] {
            let one = single_core_chip(&group, kind).unwrap();
            assert_eq!(one.places().len(), 1);
            assert_eq!(CoreKind::from_pu(&one, 0), kind);
            assert_eq!(one.spec(), group.spec());
        }
    }

    #[test]
    fn unknown_machine_is_named() {
        let error = chip("acmp-1+2").unwrap_err().to_string();
        assert!(error.starts_with("acmp-1+2: "), "{error}");
    }
}
