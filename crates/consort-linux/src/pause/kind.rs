//! The mechanisms by name.

use serde::Serialize;
use std::fmt;

/// A mechanism by which programs are paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseKind {
    /// The freezer of cgroup version 2 (`cgroup.freeze`, since Linux 5.2).
    FreezerV2,
    /// The freezer controller of cgroup version 1 (`freezer.state`).
    FreezerV1,
    /// SIGSTOP and SIGCONT to each process.
    Signals,
}

impl PauseKind {
    /// All of them, best first.
    pub const ALL: [Self; 3] = [Self::FreezerV2, Self::FreezerV1, Self::Signals];

    /// Name of the mechanism on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::FreezerV2 => "freezer-v2",
            Self::FreezerV1 => "freezer-v1",
            Self::Signals => "signals",
        }
    }
}

impl fmt::Display for PauseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
