//! Static mappings of the threads of programs to CPUs, cores and cache domains.
//!
//! Source: Wang, Dey, Mars, Tang, Davidson, Soffa, "Performance Analysis of Thread Mappings with a
//! Holistic View of the Hardware Resources" (ISPASS 2012). It compares four mappings of two
//! programs of four threads on four cores with two L2 domains: the operating system's own, and the
//! three of [`MappingScheme`]. Here these are generalised to any topology, any number of programs,
//! and more threads than CPUs, which then take turns.
//!
//! [`Mapping::from_scheme`] returns the mapping of a scheme, [`ExhaustiveMappings::new`] every
//! mapping that the topology distinguishes, and [`analysis`] shows which resource matters, from
//! counts under each mapping. Schemes ignore core types: on asymmetric chips the first program gets
//! the large core. [`ExhaustiveMappings`] distinguishes core types.

pub mod analysis;
mod exhaustive;
mod schemes;
#[cfg(test)]
mod testing;

pub use exhaustive::{ExhaustiveMappings, TooManyMappings};
pub use schemes::domains;

use crate::ids::PuId;
use crate::text::hint;
use crate::topology::Topology;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The CPU of every thread of every program.
#[doc(alias = "thread mapping")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapping {
    programs: Vec<Vec<PuId>>,
}

impl Mapping {
    /// Returns the mapping of a scheme for programs with these numbers of threads.
    pub fn from_scheme(scheme: MappingScheme, topology: &Topology, threads: &[usize]) -> Self {
        let programs = match scheme {
            MappingScheme::Iso => schemes::isolated_mapping(topology, threads),
            MappingScheme::Int => schemes::interleaved_mapping(topology, threads),
            MappingScheme::Spr => schemes::spread_mapping(topology, threads),
        };
        Self { programs }
    }

    /// Places one program's threads on these CPUs in turn.
    pub fn on_pus(pus: &[PuId], threads: usize) -> Self {
        Self {
            programs: vec![pus.iter().copied().cycle().take(threads).collect()],
        }
    }

    /// The CPU of each thread, program by program.
    pub fn programs(&self) -> &[Vec<PuId>] {
        &self.programs
    }

    /// Number of threads of each CPU that has any.
    pub fn loads(&self) -> BTreeMap<PuId, usize> {
        let mut loads = BTreeMap::new();
        for &pu in self.programs.iter().flatten() {
            *loads.entry(pu).or_default() += 1;
        }
        loads
    }
}

/// Most threads per CPU if all CPUs are used alike: threads by CPUs, rounded up.
fn max_threads_per_pu(topology: &Topology, threads: &[usize]) -> usize {
    let all: usize = threads.iter().sum();
    all.div_ceil(topology.pus().len().max(1))
}

/// A mapping with the name that its source gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MappingScheme {
    /// Each program in a cache domain of its own: siblings share caches, strangers share only the
    /// memory path.
    #[doc(alias = "isolated")]
    Iso,
    /// Each program over all cache domains and on cores of its own: siblings share cores, strangers
    /// share caches.
    #[doc(alias = "interleaved")]
    Int,
    /// Each program over all cores: strangers share cores, in turns or by SMT.
    #[doc(alias = "spread")]
    Spr,
}

/// An unknown name of a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown mapping '{name}'; {hint}")]
pub struct UnknownScheme {
    /// The given name.
    pub name: String,
    /// The nearest name, or all of them.
    pub hint: String,
}

impl MappingScheme {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Iso, Self::Int, Self::Spr];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iso => "iso",
            Self::Int => "int",
            Self::Spr => "spr",
        }
    }
}

impl fmt::Display for MappingScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for MappingScheme {
    type Err = UnknownScheme;

    fn from_str(text: &str) -> Result<Self, UnknownScheme> {
        let found = Self::ALL.into_iter().find(|scheme| scheme.name() == text);
        found.ok_or_else(|| UnknownScheme {
            name: text.to_owned(),
            hint: hint(text, Self::ALL.iter().map(|scheme| scheme.name())),
        })
    }
}

/// A text that is not a mapping, such as `0.0.1.1/2.2.3.3`: the CPUs of each program's threads.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{0}' is no mapping; write the CPUs of each program's threads, for example 0.0.1.1/2.2.3.3"
)]
pub struct MalformedMapping(String);

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, pus) in self.programs.iter().enumerate() {
            let pus: Vec<String> = pus.iter().map(ToString::to_string).collect();
            let slash = if i > 0 { "/" } else { "" };
            write!(f, "{slash}{}", pus.join("."))?;
        }
        Ok(())
    }
}

impl FromStr for Mapping {
    type Err = MalformedMapping;

    fn from_str(text: &str) -> Result<Self, MalformedMapping> {
        let pu = |number: &str| number.parse().ok().map(PuId);
        let program = |pus: &str| pus.split('.').map(pu).collect::<Option<Vec<PuId>>>();
        let programs = text.split('/').map(program).collect::<Option<_>>();
        let programs = programs.ok_or_else(|| MalformedMapping(text.to_owned()))?;
        Ok(Self { programs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_others_get_hints() {
        for scheme in MappingScheme::ALL {
            assert_eq!(scheme.name().parse(), Ok(scheme));
        }
        let error = "isi".parse::<MappingScheme>().unwrap_err().to_string();
        assert_eq!(error, "unknown mapping 'isi'; did you mean 'iso'?");
    }

    #[test]
    fn mappings_round_trip_as_text() {
        for text in ["0.0.1.1/2.2.3.3", "7", "0/1/2.3"] {
            assert_eq!(text.parse::<Mapping>().unwrap().to_string(), text);
        }
        for text in ["", "0..1", "a", "0/", "-1"] {
            let error = text.parse::<Mapping>().unwrap_err();
            assert!(error.to_string().contains("0.0.1.1/2.2.3.3"), "{text}");
        }
    }
}
