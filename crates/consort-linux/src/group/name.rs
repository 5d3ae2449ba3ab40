//! Names of groups.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Longest name, bytes; it becomes a part of file names.
const MAX_BYTES: usize = 64;

/// The name of a group: letters, digits, `.`, `_` and `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupName(String);

/// Error for a text that cannot name a group.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{0}' cannot name a group: use 1 to {MAX_BYTES} letters, digits, '.', '_' or '-', \
     and begin with a letter or digit"
)]
pub struct NameError(String);

/// Name of the group that a daemon leads; its first character keeps users from giving the same.
const DAEMON: &str = "_daemon";

impl GroupName {
    /// Name of the group that a daemon leads.
    #[must_use]
    pub fn for_daemon() -> Self {
        Self(DAEMON.to_owned())
    }

    /// Returns true if this is the daemon's group, which no other run leads.
    pub fn is_daemon(&self) -> bool {
        self.0 == DAEMON
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for GroupName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if begins_well && text.len() <= MAX_BYTES && text.chars().all(fits) {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError(text.chars().take(MAX_BYTES).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_names_are_names() {
        for text in ["suite", "7", "a.b_c-D", &"x".repeat(MAX_BYTES)] {
            assert_eq!(text.parse::<GroupName>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn what_could_leave_the_folder_or_be_too_long_is_refused() {
        let long = "x".repeat(MAX_BYTES + 1);
        for text in ["", ".", "..", "-x", "a/b", "a b", "é", "a\0", &long] {
            assert!(text.parse::<GroupName>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_name_is_always_one_part_of_a_path(text in any::<String>()) {
            if let Ok(name) = text.parse::<GroupName>() {
                let file = format!("group-{name}.socket");
                let parts = std::path::Path::new(&file).components().count();
                prop_assert_eq!(parts, 1);
            }
        }
    }
}
