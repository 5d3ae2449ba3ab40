//! Machine, program and workload descriptions by name, refused as bad input.

use crate::failure::bad_input;
use anyhow::Result;
use consort_lab::Descriptions;
pub(crate) use consort_lab::Descriptions as Programs;
use consort_sim::chip::Chip;
use consort_sim::machine::{LoadedMachine, MachineRef, MachineSource};
use consort_sim::workload::Workload;
use std::sync::Arc;

const BUILT_IN: &str = "built in";

/// Reads the machine that `text` names: `NAME`, `FILE.toml`, either with `:smt=N`,
/// `memory=NODE+NODE` or `prefetch=off` behind it.
pub(crate) fn machine(text: &str) -> Result<LoadedMachine> {
    Descriptions::load_machine(text).map_err(bad_input)
}

/// Lays out the machine that `text` names.
pub(crate) fn chip(text: &str) -> Result<Arc<Chip>> {
    let loaded = machine(text)?;
    let chip = Chip::new(&loaded.spec, loaded.smt).map_err(bad_input)?;
    Ok(Arc::new(chip))
}

/// A machine's name with the options in `text`, for people.
pub(crate) fn label(text: &str, name: &str) -> String {
    match text.parse::<MachineRef>() {
        Ok(mut requested) => {
            name.clone_into(&mut requested.machine);
            requested.to_string()
        }
        Err(_) => name.to_owned(),
    }
}

/// Lays out a machine of [`machines`] with all its CPUs; also returns the origin of its
/// description.
pub(crate) fn full_chip(name: &str) -> Result<(Chip, String)> {
    let loaded = machine(name)?;
    let chip = Chip::new(&loaded.spec, None).map_err(bad_input)?;
    let origin = match loaded.source {
        MachineSource::File(path) => path.display().to_string(),
        MachineSource::Preset(_) => BUILT_IN.to_owned(),
    };
    Ok((chip, origin))
}

/// Names of all described machines.
pub(crate) fn machines() -> Vec<String> {
    Descriptions::machine_names()
}

/// Resolves a workload expression or file.
pub(crate) fn workload(text: &str) -> Result<Workload> {
    Descriptions::resolve_workload(text).map_err(bad_input)
}
