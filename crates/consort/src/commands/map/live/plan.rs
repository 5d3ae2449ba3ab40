//! The plan of the process that starts the programs, and what it tells.

use serde::{Deserialize, Serialize};

/// Programs to start, and how often.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ProgramPlan {
    /// Programs with their arguments.
    pub(super) commands: Vec<Vec<String>>,
    /// Number of times that each program is to end, at least.
    pub(super) times: u32,
    /// True where the programs' output goes to stderr.
    pub(super) show_output: bool,
}

/// A program that was run once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ProgramExit {
    /// Number of its command.
    pub(super) program: usize,
    /// Its process.
    pub(super) pid: u32,
    /// From its start to its end, s.
    pub(super) wall_s: f64,
    /// CPU time of it and of what it started and waited for, s.
    pub(super) cpu_s: f64,
    /// Times that these were switched out.
    pub(super) switches: u64,
    /// Its exit code; 128 + n where signal n ended it.
    pub(super) exit_code: i32,
}
