//! Identifiers of CPUs, threads and programs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One hardware thread (processing unit), with the operating system's number.
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

/// A software thread during its lifetime.
///
/// Kernels reuse tids; the start time distinguishes a thread from a later one with the same number.
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
    /// The program of the thread's own process. For processes that belong to another program, use
    /// [`crate::Observation::program_of`].
    pub fn program(self) -> ProgramId {
        ProgramId(self.pid)
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.pid, self.tid)
    }
}

/// A process with its threads, identified by its pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProgramId(pub u32);

impl fmt::Display for ProgramId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
