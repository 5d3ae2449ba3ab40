//! The rate at which managed programs are watched.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The rate at which managed programs are watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WatchRate {
    /// Few samples and rare scans, for programs that Consort only reports on.
    Light,
    /// As many samples as the cost of one permits, so that plans follow the programs' phases.
    #[default]
    Full,
}

impl WatchRate {
    /// The names of all rates, as [`str::parse`] takes them.
    pub const NAMES: [&str; 2] = ["light", "full"];
}

impl fmt::Display for WatchRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Light => "light",
            Self::Full => "full",
        })
    }
}

/// A name that no [`WatchRate`] has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown watch '{0}'; there are light and full")]
pub struct UnknownWatchRate(String);

impl FromStr for WatchRate {
    type Err = UnknownWatchRate;

    fn from_str(name: &str) -> Result<Self, UnknownWatchRate> {
        match name {
            "light" => Ok(Self::Light),
            "full" => Ok(Self::Full),
            _ => Err(UnknownWatchRate(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_shown() {
        for name in WatchRate::NAMES {
            assert_eq!(name.parse::<WatchRate>().unwrap().to_string(), name);
        }
        assert!("none".parse::<WatchRate>().is_err());
    }
}
