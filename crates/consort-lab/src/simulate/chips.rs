//! The asymmetric machines, whole and reduced to one core.

use super::part_error;
use crate::study::StudyError;
use consort_experiment::watch::CoreKind;
use consort_sim::chip::Chip;
use consort_sim::machine::{MachineSpec, presets};
use std::sync::Arc;

/// The description of a machine that comes with Consort.
pub(crate) fn machine_spec(machine: &str) -> Result<MachineSpec, StudyError> {
    presets::find(machine).map_err(part_error(machine))
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
    fn a_single_core_keeps_the_caches_of_the_machine() {
        let group = chip("acmp-1+3").unwrap();
        for kind in [CoreKind::Large, CoreKind::Small] {
            let one = single_core_chip(&group, kind).unwrap();
            assert_eq!(one.places().len(), 1);
            assert_eq!(CoreKind::from_pu(&one, 0), kind);
            assert_eq!(one.spec(), group.spec());
        }
    }

    #[test]
    fn a_machine_that_is_not_there_is_named() {
        let error = chip("acmp-1+2").unwrap_err().to_string();
        assert!(error.starts_with("acmp-1+2: "), "{error}");
    }
}
