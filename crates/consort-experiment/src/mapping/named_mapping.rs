//! Policy that holds threads where a mapping wants them.

use crate::{Contender, ExperimentError};
use consort_core::mapping::{Mapping, MappingScheme};

/// The mapping that is none: what the operating system does.
pub const OS: &str = "os";

/// A mapping by name, with what brings it about on a simulated machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMapping {
    name: String,
    contender: Contender,
}

impl NamedMapping {
    /// The operating system of that name, left alone.
    ///
    /// # Errors
    /// An unknown name.
    pub fn from_os(system: &str) -> Result<Self, ExperimentError> {
        Ok(Self {
            name: OS.to_owned(),
            contender: Contender::new("none", system)?,
        })
    }

    /// A named mapping on top of an operating system.
    ///
    /// # Errors
    /// An unknown operating system.
    pub fn from_scheme(scheme: MappingScheme, system: &str) -> Result<Self, ExperimentError> {
        Self::from_map(scheme.name(), system)
    }

    /// These PUs for the threads of each program.
    ///
    /// # Errors
    /// An unknown operating system.
    pub fn from_mapping(mapping: &Mapping, system: &str) -> Result<Self, ExperimentError> {
        Self::from_map(&mapping.to_string(), system)
    }

    /// A policy that finds mappings by itself.
    ///
    /// # Errors
    /// An unknown policy or operating system.
    pub fn from_policy(name: &str, system: &str) -> Result<Self, ExperimentError> {
        Ok(Self {
            name: name.to_owned(),
            contender: Contender::new(name, system)?,
        })
    }

    /// From the first quantum on every thread is where it is to be, active or not.
    fn from_map(map: &str, system: &str) -> Result<Self, ExperimentError> {
        let policy = format!("mapping:map={map},active=0");
        Ok(Self {
            name: map.to_owned(),
            contender: Contender::new(&policy, system)?,
        })
    }

    /// Its name: `os`, `iso`, `int`, `spr`, or the PUs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The contender that brings it about.
    pub fn contender(&self) -> &Contender {
        &self.contender
    }
}
