//! Machines, programs and workloads by name: files by path, the user's folder, the system's folder,
//! presets.

use crate::simulate::DescriptionSource;
use consort_sim::machine::{KeyChange, LoadedMachine, MachineError, MachineRef};
use consort_sim::program::{self, ProgramSpec, presets};
use consort_sim::workload::{
    DescriptionFile, LoadError, ProgramSource, Workload, WorkloadError, WorkloadFile, WorkloadSpec,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Origin of descriptions that come with Consort.
const BUILT_IN: &str = "built in";

/// Folders that hold configuration and descriptions, the user's before the system's.
pub fn folders() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let user = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or(home);
    let system = Some(PathBuf::from("/etc"));
    let roots = [user, system].into_iter().flatten();
    roots.map(|root| root.join("consort")).collect()
}

/// Folders that are searched for descriptions of a kind (`machines`, `programs`), first wins.
fn description_folders(kind: &str) -> Vec<PathBuf> {
    let folders = folders().into_iter();
    folders.map(|folder| folder.join(kind)).collect()
}

/// Descriptions in the usual folders, and those that come with Consort.
#[derive(Clone, Copy, Debug, Default)]
pub struct Descriptions;

impl Descriptions {
    /// Reads the machine that `text` names: `NAME`, `FILE.toml`, either with `:smt=N`,
    /// `memory=NODE+NODE` or `prefetch=off` behind it.
    ///
    /// # Errors
    /// As of [`MachineRef::load`].
    pub fn load_machine(text: &str) -> Result<LoadedMachine, MachineError> {
        Self::load_machine_with_changes(text, &[])
    }

    /// Reads a machine as [`Descriptions::load_machine`] does, with values of its description changed.
    ///
    /// # Errors
    /// As of [`MachineRef::load_with_changes`].
    pub fn load_machine_with_changes(
        text: &str,
        changes: &[KeyChange],
    ) -> Result<LoadedMachine, MachineError> {
        let reference: MachineRef = text.parse()?;
        reference.load_with_changes(&description_folders("machines"), changes)
    }

    /// Resolves a workload expression or file.
    ///
    /// # Errors
    /// As of [`Workload::resolve`].
    pub fn resolve_workload(text: &str) -> Result<Workload, WorkloadError> {
        Workload::resolve(text, &Self)
    }

    /// Names of all described machines.
    pub fn machine_names() -> Vec<String> {
        names("machines", consort_sim::machine::presets::names())
    }

    fn find_in_folders(name: &str) -> Option<PathBuf> {
        let paths = description_folders("programs").into_iter();
        let mut paths = paths.map(|folder| folder.join(format!("{name}.toml")));
        paths.find(|path| path.is_file())
    }

    /// Origin of a program's description: a path, or the built-in ones.
    pub fn origin(name: &str) -> String {
        let path = Self::find_in_folders(name).map(|path| path.display().to_string());
        path.unwrap_or_else(|| BUILT_IN.to_owned())
    }
}

/// Names of the built-in and of the user's own descriptions of a kind, in order.
fn names(kind: &str, built_in: impl Iterator<Item = &'static str>) -> Vec<String> {
    let mut names: Vec<String> = built_in.map(str::to_owned).collect();
    for folder in description_folders(kind) {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path());
        let files = files.filter(|path| path.extension().is_some_and(|e| e == "toml"));
        names.extend(files.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())));
    }
    names.sort();
    names.dedup();
    names
}

impl DescriptionSource for Descriptions {
    fn find_machine(&self, text: &str) -> Result<LoadedMachine, MachineError> {
        Self::load_machine(text)
    }
}

impl ProgramSource for Descriptions {
    fn find(&self, name: &str) -> Result<Option<Arc<ProgramSpec>>, LoadError> {
        if let Some(path) = Self::find_in_folders(name) {
            let spec = program::parse(&path.display().to_string(), &read(&path)?);
            let spec = spec.map_err(|error| LoadError(error.to_string()))?;
            return Ok(Some(Arc::new(spec)));
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

    fn is_file(&self, path: &str) -> bool {
        consort_describe::input::is_file(path)
    }

    fn load(&self, path: &str) -> Result<DescriptionFile, LoadError> {
        let text = read(Path::new(path))?;
        if WorkloadSpec::is_workload_text(&text) {
            let file = WorkloadFile::parse(path, &text);
            let file = file.map_err(|error| LoadError(error.to_string()))?;
            return Ok(DescriptionFile::Workload(file));
        }
        let has = |key: &str| text.lines().any(|line| line.starts_with(key));
        if has("differs") && has("original") {
            return Err(LoadError(format!(
                "{path}: a study; expected a program or a workload (`consort reproduce {path}` runs it)"
            )));
        }
        let spec = program::parse(path, &text).map_err(|error| LoadError(error.to_string()))?;
        Ok(DescriptionFile::Program(Arc::new(spec)))
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
    let reported = |error: std::io::Error| LoadError(format!("{}: {error}", path.display()));
    consort_describe::input::read_text(path).map_err(reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_found_by_name() {
        assert!(
            Descriptions::machine_names()
                .iter()
                .any(|name| name == "power8")
        );
        let chip = Descriptions.load_chip("power8:smt=2").unwrap();
        assert_eq!(chip.topology().smt(), 2);
        assert!(Descriptions.suites().iter().any(|name| name == "spec2006"));
        assert_eq!(
            Descriptions::resolve_workload("2*mcf")
                .unwrap()
                .entries
                .len(),
            2
        );
        let changes = [("llc.size_kib".to_owned(), 4096.into())];
        let loaded = Descriptions::load_machine_with_changes("power8", &changes).unwrap();
        assert_eq!(loaded.spec.llc.size_kib, 4096.0);
    }
}
