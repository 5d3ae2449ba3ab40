//! The crew: processes and threads that do known work while something else is measured.
//!
//! Worker processes are this program, started with a hidden verb as its first argument:
//!
//! | arguments | work | protocol |
//! |---|---|---|
//! | `__train PLAN` | pairs of kernels on two PUs | the plan is JSON; one JSON document per thread on stdout |
//! | `__map PLAN` | commands, again and again | the plan is JSON; one JSON document per ended command on stdout |
//! | `__load THREADS SHARE` | threads that work a share of the time, until stdin ends | `ready`, then the steps done for each line on stdin |
//! | `__load NAME SECONDS` | a named load | one JSON document on stdout |

pub(crate) mod commands;
pub(crate) mod kernels;
pub(crate) mod loads;
pub(crate) mod process;
pub(crate) mod watched;

use anyhow::Result;
use serde::Serialize;
use std::io::Write;

/// Verb of the process that runs training kernels.
pub(crate) const TRAIN: &str = "__train";
/// Verb of the process that runs the commands of a mapping.
pub(crate) const MAP: &str = "__map";
/// Verb of the processes that a bench measures.
pub(crate) const LOAD: &str = "__load";

/// Writes a result as one line, which [`watched::WorkerResults`] reads back.
pub(crate) fn write_line(out: &mut impl Write, result: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, result)?;
    writeln!(out)?;
    Ok(())
}
