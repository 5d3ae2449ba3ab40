//! Ways in which spinning threads come into being.

use serde::Serialize;
use std::fmt::{Display, Formatter};
use std::str::FromStr;

/// The kinds of arrival that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SpinnerArrival {
    /// One process creates threads one after another and does not wait for any to run.
    Threads,
    /// One process forks processes of one thread, one after another, without `exec`.
    Processes,
}

impl SpinnerArrival {
    /// All kinds of arrival.
    pub const ALL: [Self; 2] = [Self::Threads, Self::Processes];

    fn word(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
        }
    }
}

impl Display for SpinnerArrival {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for SpinnerArrival {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|arrival| arrival.word() == word)
            .ok_or_else(|| format!("'{word}' is not 'threads' or 'processes'"))
    }
}
