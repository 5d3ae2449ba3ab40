//! Where machine, program and workload descriptions are found: files by path, the user's folder,
//! the system's folder, what comes built in.

use crate::config;
use crate::failure::bad_input;
use anyhow::Result;
use consort_sim::chip::Chip;
use consort_sim::machine::{Loaded, MachineRef, Source};
use consort_sim::program::{self, ProgramSpec, presets};
use consort_sim::workload::{
    Described, LoadError, ProgramSource, Workload, WorkloadFile, WorkloadSpec,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Origin of what comes with Consort.
const BUILT_IN: &str = "built in";

/// Folders that are searched for descriptions of a kind (`machines`, `programs`), first wins.
fn folders(kind: &str) -> Vec<PathBuf> {
    let folders = config::folders().into_iter();
    folders.map(|folder| folder.join(kind)).collect()
}

/// Reads the machine that `text` names: `NAME`, `FILE.toml`, either with `:smt=N`,
/// `memory=NODE+NODE` or `prefetch=off` behind it.
pub(crate) fn machine(text: &str) -> Result<Loaded> {
    let reference: MachineRef = text.parse().map_err(bad_input)?;
    reference.load(&folders("machines")).map_err(bad_input)
}

/// Lays out the machine that `text` names.
pub(crate) fn chip(text: &str) -> Result<Arc<Chip>> {
    let loaded = machine(text)?;
    let chip = Chip::new(&loaded.spec, loaded.smt).map_err(bad_input)?;
    Ok(Arc::new(chip))
}

/// A machine as people read it: its name with the options that `text` asks for.
pub(crate) fn label(text: &str, name: &str) -> String {
    let named = |asked: MachineRef| MachineRef {
        machine: name.to_owned(),
        ..asked
    };
    let asked = text.parse::<MachineRef>();
    asked.map_or_else(|_| name.to_owned(), |asked| named(asked).to_string())
}

/// Lays out a machine of [`machines`] with all its PUs; also tells where its description is from.
pub(crate) fn whole_chip(name: &str) -> Result<(Chip, String)> {
    let reference = MachineRef {
        machine: name.to_owned(),
        ..MachineRef::default()
    };
    let loaded = reference.load(&folders("machines")).map_err(bad_input)?;
    let chip = Chip::new(&loaded.spec, None).map_err(bad_input)?;
    let origin = match loaded.source {
        Source::File(path) => path.display().to_string(),
        Source::Preset(_) => BUILT_IN.to_owned(),
    };
    Ok((chip, origin))
}

/// Names of all described machines.
pub(crate) fn machines() -> Vec<String> {
    names("machines", consort_sim::machine::presets::names())
}

/// Resolves a workload expression or file.
pub(crate) fn workload(text: &str) -> Result<Workload> {
    Workload::resolve(text, &Programs).map_err(bad_input)
}

/// Programs in folders and built in.
pub(crate) struct Programs;

impl Programs {
    fn in_folders(name: &str) -> Option<PathBuf> {
        let paths = folders("programs").into_iter();
        let mut paths = paths.map(|folder| folder.join(format!("{name}.toml")));
        paths.find(|path| path.is_file())
    }

    /// Where a program's description comes from.
    pub(crate) fn origin(name: &str) -> String {
        let path = Self::in_folders(name).map(|path| path.display().to_string());
        path.unwrap_or_else(|| BUILT_IN.to_owned())
    }
}

/// Names of what comes built in and of the user's own descriptions of a kind, in order.
fn names(kind: &str, built_in: impl Iterator<Item = &'static str>) -> Vec<String> {
    let mut names: Vec<String> = built_in.map(str::to_owned).collect();
    names.extend(own(kind));
    names.sort();
    names.dedup();
    names
}

/// Names of the user's own descriptions of a kind.
fn own(kind: &str) -> Vec<String> {
    let entries = folders(kind).into_iter().filter_map(|folder| {
        let entries = std::fs::read_dir(folder).ok()?;
        Some(entries.filter_map(Result::ok).map(|entry| entry.path()))
    });
    let files = entries
        .flatten()
        .filter(|path| path.extension().is_some_and(|e| e == "toml"));
    files
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect()
}

impl ProgramSource for Programs {
    fn find(&self, name: &str) -> Result<Option<Arc<ProgramSpec>>, LoadError> {
        if let Some(path) = Self::in_folders(name) {
            return Ok(Some(Arc::new(read_program(&path)?)));
        }
        if !presets::names().any(|known| known == name) {
            return Ok(None);
        }
        let spec = presets::find(name).map_err(|error| LoadError(error.to_string()))?;
        Ok(Some(Arc::new(spec)))
    }

    fn suite(&self, name: &str) -> Result<Vec<Arc<ProgramSpec>>, LoadError> {
        let mut members = Vec::new();
        for program in self.programs() {
            members.extend(self.find(&program)?.filter(|spec| spec.suite == name));
        }
        Ok(members)
    }

    fn load(&self, path: &str) -> Result<Described, LoadError> {
        let text = read(Path::new(path))?;
        if WorkloadSpec::is_meant_by(&text) {
            let file = WorkloadFile::parse(path, &text);
            let file = file.map_err(|error| LoadError(error.to_string()))?;
            return Ok(Described::Workload(file));
        }
        let spec = program::parse(path, &text).map_err(|error| LoadError(error.to_string()))?;
        Ok(Described::Program(Arc::new(spec)))
    }

    fn programs(&self) -> Vec<String> {
        names("programs", presets::names())
    }

    fn suites(&self) -> Vec<String> {
        let mut suites: Vec<String> = self
            .programs()
            .iter()
            .filter_map(|name| Some(self.find(name).ok()??.suite.clone()))
            .collect();
        suites.sort();
        suites.dedup();
        suites
    }
}

fn read(path: &Path) -> Result<String, LoadError> {
    let told = |error: std::io::Error| LoadError(format!("{}: {error}", path.display()));
    consort_input::text(path).map_err(told)
}

fn read_program(path: &Path) -> Result<ProgramSpec, LoadError> {
    let text = read(path)?;
    program::parse(&path.display().to_string(), &text).map_err(|error| LoadError(error.to_string()))
}
