//! Machines as people name them: `NAME_OR_PATH[:smt=N][,memory=NODE+NODE][,prefetch=off]`.

use super::edit::{KeyChange, apply_changes};
use super::presets::{self, MachinePresetError};
use super::spec::MachineSpec;
use crate::describe::{DescribeError, Problems};
use crate::input::{is_file, is_path};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use thiserror::Error;

/// Switches prefetchers off.
const PREFETCH_OFF: &str = "prefetch=off";

/// A machine by name or path, and what of it to use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineRef {
    /// Name of a preset or of a file in the caller's directories, or a path.
    pub machine: String,
    /// Most CPUs per core; all that the cores have without.
    pub smt: Option<u32>,
    /// Nodes that have memory, as [`super::NumaSpec::memory_nodes`]; those of the description
    /// without.
    pub memory: Option<Vec<u32>>,
    /// True where all prefetchers are switched off.
    pub prefetch_off: bool,
}

/// Place in which a description was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MachineSource {
    /// In this file.
    File(PathBuf),
    /// Among the presets.
    Preset(String),
}

/// A machine ready to be laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedMachine {
    /// The description of the whole chip.
    pub spec: MachineSpec,
    /// Most CPUs per core that the reference allows.
    pub smt: Option<u32>,
    /// Place in which it was found.
    pub source: MachineSource,
}

/// Reason why a machine cannot be loaded.
#[derive(Debug, Error)]
pub enum MachineError {
    /// The text after the `:` is not an option.
    #[error(
        "invalid option '{option}' in machine '{text}'; expected smt=N with N from 1, \
         memory=NODE+NODE+... with nodes from 0, prefetch=off, or several with commas between"
    )]
    Option {
        /// The whole text.
        text: String,
        /// Text after the `:`.
        option: String,
    },
    /// There is no name before the `:`.
    #[error("machine '{text}' has no name; expected NAME_OR_PATH[:OPTIONS]")]
    NoName {
        /// The whole text.
        text: String,
    },
    /// The file cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of reading it.
        error: std::io::Error,
    },
    /// The file is wrong.
    #[error(transparent)]
    Describe(#[from] DescribeError),
    /// No file and no preset has the name.
    #[error(transparent)]
    Preset(#[from] MachinePresetError),
    /// The machine's cores have no such mode.
    #[error(
        "smt={requested} for machine '{machine}', whose cores have no such mode; expected one of {modes}"
    )]
    NoSuchMode {
        /// Requested ways.
        requested: u32,
        /// Ways of the modes that the cores have.
        modes: String,
        /// The machine.
        machine: String,
    },
    /// There is nothing to switch off.
    #[error("prefetch=off for machine '{machine}': it has no prefetchers; expected no prefetch=")]
    NoPrefetchers {
        /// The machine.
        machine: String,
    },
    /// The nodes that are to have memory do not fit the machine.
    #[error("memory={requested} for machine '{machine}': {why}")]
    Memory {
        /// Requested node.
        requested: String,
        /// The machine.
        machine: String,
        /// Account of what is wrong and what was expected.
        why: String,
    },
}

impl FromStr for MachineRef {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, MachineError> {
        let (machine, options) = match text.rsplit_once(':') {
            // `./a:b` is one path if there is such a file.
            Some((machine, options)) if !text.ends_with(".toml") && !is_file(text) => {
                (machine, Some(options))
            }
            _ => (text, None),
        };
        if machine.is_empty() {
            let text = text.to_owned();
            return Err(MachineError::NoName { text });
        }
        let mut reference = Self {
            machine: machine.to_owned(),
            ..Self::default()
        };
        for option in options.into_iter().flat_map(|options| options.split(',')) {
            let taken = reference.apply_option(option);
            taken.ok_or_else(|| MachineError::Option {
                text: text.to_owned(),
                option: option.to_owned(),
            })?;
        }
        Ok(reference)
    }
}

impl fmt::Display for MachineRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let smt = self.smt.map(|ways| format!("smt={ways}"));
        let memory = self.memory.as_deref();
        let memory = memory.map(|nodes| format!("memory={}", join_nodes(nodes)));
        let prefetch = self.prefetch_off.then(|| PREFETCH_OFF.to_owned());
        let options: Vec<String> = smt.into_iter().chain(memory).chain(prefetch).collect();
        f.write_str(&self.machine)?;
        if options.is_empty() {
            return Ok(());
        }
        write!(f, ":{}", options.join(","))
    }
}

fn join_nodes(nodes: &[u32]) -> String {
    let nodes: Vec<String> = nodes.iter().map(u32::to_string).collect();
    nodes.join("+")
}

impl MachineRef {
    /// Takes `smt=N`, `memory=NODE+NODE` or `prefetch=off`, each at most once; `None` if it is
    /// another text.
    fn apply_option(&mut self, option: &str) -> Option<()> {
        if option == PREFETCH_OFF && !self.prefetch_off {
            self.prefetch_off = true;
            return Some(());
        }
        match option.split_once('=')? {
            ("smt", ways) if self.smt.is_none() => {
                self.smt = Some(ways.parse().ok().filter(|&ways| ways > 0)?);
            }
            ("memory", nodes) if self.memory.is_none() => {
                let nodes = nodes.split('+').map(|node| node.parse().ok());
                self.memory = Some(nodes.collect::<Option<_>>()?);
            }
            _ => return None,
        }
        Some(())
    }

    /// Place of the machine: a path by its form (see [`is_path`]), else `NAME.toml` in the first of
    /// `directories` that has it, else a preset, else a file of that name.
    pub fn source(&self, directories: &[PathBuf]) -> MachineSource {
        if is_path(&self.machine) {
            return MachineSource::File(PathBuf::from(&self.machine));
        }
        let file = format!("{}.toml", self.machine);
        let files = directories.iter().map(|directory| directory.join(&file));
        let first = files.into_iter().find(|path| path.is_file());
        if let Some(path) = first {
            return MachineSource::File(path);
        }
        if presets::text(&self.machine).is_none() && is_file(&self.machine) {
            return MachineSource::File(PathBuf::from(&self.machine));
        }
        MachineSource::Preset(self.machine.clone())
    }

    /// Finds, reads and validates the machine; `directories` as for [`MachineRef::source`].
    ///
    /// # Errors
    /// A file that cannot be read or is wrong, an unknown name, more CPUs than the cores have,
    /// memory on nodes that are not there, prefetchers to switch off where there are none.
    pub fn load(&self, directories: &[PathBuf]) -> Result<LoadedMachine, MachineError> {
        self.load_with_changes(directories, &[])
    }

    /// The same with values of the description changed; see [`apply_changes`].
    ///
    /// # Errors
    /// As for [`MachineRef::load`], for the description as it is changed.
    pub fn load_with_changes(
        &self,
        directories: &[PathBuf],
        changes: &[KeyChange],
    ) -> Result<LoadedMachine, MachineError> {
        let source = self.source(directories);
        let (file, text) = source.read()?;
        let text = apply_changes(&file, &text, changes)?;
        let spec = super::parse(&file, &text)?;
        let modes = spec.core_types.values().flat_map(|core| &core.smt);
        let mut modes: BTreeSet<u32> = modes.map(|mode| mode.ways).collect();
        modes.insert(1);
        if let Some(requested) = self.smt.filter(|requested| !modes.contains(requested)) {
            let modes: Vec<String> = modes.iter().map(u32::to_string).collect();
            return Err(MachineError::NoSuchMode {
                requested,
                modes: modes.join(", "),
                machine: self.machine.clone(),
            });
        }
        let mut spec = self.with_memory(spec)?;
        if self.prefetch_off {
            let mut cores = spec.core_types.values();
            if cores.all(|core| core.prefetcher.is_none()) {
                let machine = self.machine.clone();
                return Err(MachineError::NoPrefetchers { machine });
            }
            spec = spec.without_prefetchers();
        }
        let smt = self.smt;
        Ok(LoadedMachine { spec, smt, source })
    }

    /// The machine with memory on the requested nodes only.
    fn with_memory(&self, mut spec: MachineSpec) -> Result<MachineSpec, MachineError> {
        let Some(nodes) = &self.memory else {
            return Ok(spec);
        };
        let refused = |why: String| MachineError::Memory {
            requested: join_nodes(nodes),
            machine: self.machine.clone(),
            why,
        };
        let Some(numa) = &mut spec.numa else {
            return Err(refused("it has a single node; expected no memory=".into()));
        };
        // The same checks as for a file that has these nodes.
        numa.memory_nodes = Some(nodes.clone());
        let mut problems = Problems::default();
        super::validate(&spec, &mut problems);
        match problems.list().first() {
            None => Ok(spec),
            Some(problem) => Err(refused(problem.message.clone())),
        }
    }
}

impl MachineSource {
    /// Name for messages, and text, of the description.
    ///
    /// # Errors
    /// A file that cannot be read, an unknown preset.
    pub fn read(&self) -> Result<(String, Cow<'static, str>), MachineError> {
        match self {
            Self::File(path) => {
                let text = crate::input::read_text(path).map_err(|error| MachineError::Read {
                    path: path.clone(),
                    error,
                })?;
                Ok((path.display().to_string(), text.into()))
            }
            Self::Preset(name) => match presets::text(name) {
                Some(text) => Ok((format!("machines/{name}.toml"), text.into())),
                None => Err(presets::unknown_preset(name).into()),
            },
        }
    }
}

impl MachineSpec {
    /// The machine with all prefetchers switched off, as by the bits of a control register.
    pub fn without_prefetchers(mut self) -> Self {
        for core in self.core_types.values_mut() {
            core.prefetcher = None;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_and_written() {
        for text in [
            "power7",
            "power7:smt=2",
            "./my chip.toml:smt=1",
            "a:b:smt=3",
            "power8:memory=0",
            "power8:smt=2,memory=0+1",
            "core2-q9550:prefetch=off",
            "power8:smt=2,memory=0,prefetch=off",
        ] {
            let parsed: MachineRef = text.parse().expect("it is a reference");
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn invalid_reference_is_refused() {
        let check = |text: &str, expect: &str| {
            let error = text.parse::<MachineRef>().expect_err("it is none");
            assert_eq!(error.to_string(), expect);
        };
        let expected = "expected smt=N with N from 1, memory=NODE+NODE+... with \
                        nodes from 0, prefetch=off, or several with commas between";
        for option in [
            "smt=0",
            "smt=two",
            "smt",
            "",
            "ways=2",
            "memory=",
            "memory=0+x",
            "prefetch=on",
        ] {
            let text = format!("power7:{option}");
            check(
                &text,
                &format!("invalid option '{option}' in machine '{text}'; {expected}"),
            );
        }
        let twice = "power7:smt=2,smt=4";
        check(
            twice,
            &format!("invalid option 'smt=4' in machine '{twice}'; {expected}"),
        );
        check(
            ":smt=2",
            "machine ':smt=2' has no name; expected NAME_OR_PATH[:OPTIONS]",
        );
    }

    fn load(text: &str) -> Result<LoadedMachine, MachineError> {
        let reference: MachineRef = text.parse().expect("it is a reference");
        reference.load(&[])
    }

    #[test]
    fn memory_is_on_the_requested_nodes() {
        let nodes = |text| {
            let spec = load(text).expect("it is a machine").spec;
            spec.numa.and_then(|numa| numa.memory_nodes)
        };
        assert_eq!(nodes("power8"), None);
        assert_eq!(nodes("power8:smt=2,memory=1"), Some(vec![1]));
    }

    #[test]
    fn prefetchers_are_switched_off_where_there_are_some() {
        let off = load("core-i9-12900k:prefetch=off").expect("it is a machine");
        let with = load("core-i9-12900k").expect("it is a machine").spec;
        assert!(
            off.spec
                .core_types
                .values()
                .all(|core| core.prefetcher.is_none())
        );
        assert_ne!(off.spec, with);
        assert_eq!(off.spec, with.without_prefetchers());
        let refused = load("acmp-1+1:prefetch=off")
            .expect_err("it has none")
            .to_string();
        assert!(
            refused.ends_with("it has no prefetchers; expected no prefetch="),
            "{refused}"
        );
    }

    #[test]
    fn impossible_memory_nodes_are_refused() {
        let reported = |text| load(text).expect_err("it is refused").to_string();
        assert_eq!(
            reported("power8:memory=2"),
            "memory=2 for machine 'power8': names node 2; expected 0 to 1"
        );
        assert!(
            reported("power8:memory=1+1").ends_with("names node 1 twice; expected each node once")
        );
        assert!(reported("power7:memory=0").ends_with("it has a single node; expected no memory="));
    }
}
