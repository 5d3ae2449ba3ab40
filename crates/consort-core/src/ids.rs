//! Names of things: PUs, cores, threads, programs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One hardware thread, by the number that the operating system gives it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct PuId(pub u32);

impl fmt::Display for PuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A software thread for as long as it lives.
///
/// Kernels reuse tids; the start time tells a thread from a later one with the
/// same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId {
    /// Process (thread group) id.
    pub pid: u32,
    /// Kernel thread id.
    pub tid: u32,
    /// Start time in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub start_ticks: u64,
}

impl ThreadId {
    /// The program of the thread's own process; where that is part of another program,
    /// [`crate::Observation::program_of`] tells.
    pub fn program(self) -> ProgramId {
        ProgramId(self.pid)
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.pid, self.tid)
    }
}

/// A process with its threads, by its pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgramId(pub u32);

impl fmt::Display for ProgramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
