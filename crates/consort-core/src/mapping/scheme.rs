//! The named mappings.

use crate::suggest::hint;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A mapping by the name that its source gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MappingScheme {
    /// Each program in a cache domain of its own: siblings share caches, strangers only the memory
    /// path.
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

/// A name that is none of the mappings'.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown mapping '{name}'; {hint}")]
pub struct UnknownScheme {
    /// Name that was asked for.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_told_what_would_be_right() {
        for scheme in MappingScheme::ALL {
            assert_eq!(scheme.name().parse(), Ok(scheme));
        }
        let error = "isi".parse::<MappingScheme>().unwrap_err().to_string();
        assert_eq!(error, "unknown mapping 'isi'; did you mean 'iso'?");
    }
}
