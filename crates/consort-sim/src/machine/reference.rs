//! Machines as people name them: `NAME_OR_PATH[:smt=N]`.

use super::presets::{self, PresetError};
use super::spec::MachineSpec;
use crate::describe::DescribeError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error;

/// A machine by name or path, and how many PUs per core of it to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineRef {
    /// Name of a preset or of a file in the caller's directories, or a path that ends in `.toml`.
    pub machine: String,
    /// Most PUs per core; all that the cores have without.
    pub smt: Option<u32>,
}

/// Where a description was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In this file.
    File(PathBuf),
    /// Among the presets.
    Preset(String),
}

/// A machine ready to be laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The description of the whole chip.
    pub spec: MachineSpec,
    /// Most PUs per core; for [`crate::chip::Chip::new`].
    pub smt: Option<u32>,
    /// Where it was found.
    pub source: Source,
}

/// Why a machine cannot be had.
#[derive(Debug, Error)]
pub enum MachineError {
    /// What follows the `:` is no option.
    #[error("'{option}' in machine '{text}' is no option; expected smt=N with N from 1")]
    Option {
        /// The whole text.
        text: String,
        /// What follows the `:`.
        option: String,
    },
    /// There is no name before the `:`.
    #[error("machine '{text}' has no name; expected NAME_OR_PATH[:smt=N]")]
    NoName {
        /// The whole text.
        text: String,
    },
    /// The file cannot be read.
    #[error("{}: cannot be read: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// The file is wrong.
    #[error(transparent)]
    Describe(#[from] DescribeError),
    /// No file and no preset has the name.
    #[error(transparent)]
    Preset(#[from] PresetError),
    /// The machine's cores have fewer PUs.
    #[error(
        "smt={asked} for machine '{machine}', whose cores have {most} PUs; expected 1 to {most}"
    )]
    TooManyWays {
        /// Asked for.
        asked: u32,
        /// PUs of the core with the most.
        most: u32,
        /// The machine.
        machine: String,
    },
}

impl FromStr for MachineRef {
    type Err = MachineError;

    fn from_str(text: &str) -> Result<Self, MachineError> {
        let (machine, smt) = match text.rsplit_once(':') {
            Some((machine, option)) if !text.ends_with(".toml") => {
                (machine, Some(smt(text, option)?))
            }
            _ => (text, None),
        };
        if machine.is_empty() {
            let text = text.to_owned();
            return Err(MachineError::NoName { text });
        }
        let machine = machine.to_owned();
        Ok(Self { machine, smt })
    }
}

fn smt(text: &str, option: &str) -> Result<u32, MachineError> {
    let ways = option.strip_prefix("smt=").and_then(|n| n.parse().ok());
    ways.filter(|&ways| ways > 0)
        .ok_or_else(|| MachineError::Option {
            text: text.to_owned(),
            option: option.to_owned(),
        })
}

impl fmt::Display for MachineRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.machine)?;
        self.smt.map_or(Ok(()), |ways| write!(f, ":smt={ways}"))
    }
}

impl MachineRef {
    /// Where the machine is: the path itself when it ends in `.toml`, else `NAME.toml` in the
    /// first of `directories` that has it, else a preset.
    pub fn source(&self, directories: &[PathBuf]) -> Source {
        if self.machine.ends_with(".toml") {
            return Source::File(PathBuf::from(&self.machine));
        }
        let file = format!("{}.toml", self.machine);
        let files = directories.iter().map(|directory| directory.join(&file));
        let first = files.into_iter().find(|path| path.is_file());
        first.map_or_else(|| Source::Preset(self.machine.clone()), Source::File)
    }

    /// Finds, reads and validates the machine; `directories` as for [`MachineRef::source`].
    ///
    /// # Errors
    /// A file that cannot be read or is wrong, an unknown name, more PUs than the cores have.
    pub fn load(&self, directories: &[PathBuf]) -> Result<Loaded, MachineError> {
        let source = self.source(directories);
        let spec = match &source {
            Source::File(path) => read(path)?,
            Source::Preset(name) => presets::find(name)?,
        };
        self.check_ways(&spec)?;
        let smt = self.smt;
        Ok(Loaded { spec, smt, source })
    }

    fn check_ways(&self, spec: &MachineSpec) -> Result<(), MachineError> {
        let modes = spec.core_types.values().flat_map(|core| &core.smt);
        let most = modes.map(|mode| mode.ways).max().unwrap_or(1);
        match self.smt {
            Some(asked) if asked > most => Err(MachineError::TooManyWays {
                asked,
                most,
                machine: self.machine.clone(),
            }),
            _ => Ok(()),
        }
    }
}

fn read(path: &Path) -> Result<MachineSpec, MachineError> {
    let text = std::fs::read_to_string(path).map_err(|error| MachineError::Read {
        path: path.to_owned(),
        error,
    })?;
    Ok(super::parse(&path.display().to_string(), &text)?)
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
        ] {
            let parsed: MachineRef = text.parse().expect("it is a reference");
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_reference_is_told() {
        let check = |text: &str, expect: &str| {
            let error = text.parse::<MachineRef>().expect_err("it is none");
            assert_eq!(error.to_string(), expect);
        };
        let expected = "is no option; expected smt=N with N from 1";
        for option in ["smt=0", "smt=two", "smt", "", "ways=2"] {
            let text = format!("power7:{option}");
            check(&text, &format!("'{option}' in machine '{text}' {expected}"));
        }
        check(
            ":smt=2",
            "machine ':smt=2' has no name; expected NAME_OR_PATH[:smt=N]",
        );
    }
}
