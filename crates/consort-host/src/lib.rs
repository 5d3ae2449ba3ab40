//! Experiments on the live machine, with one crew of workers.
//!
//! - [`probe`] measures which CPUs share what.
//! - [`mapping`] runs commands under thread mappings.
//! - [`training`] runs kernels alone and in pairs, for interference models, and
//!   [`command_training`] does so with commands.
//! - [`bench`](mod@bench) measures what the daemon and being managed cost.
//!
//! A worker is a thread pinned to a CPU, or a child process: the program itself, started again with
//! a hidden verb. A program that uses this crate therefore calls [`run_worker`] before it reads its
//! own arguments; otherwise its workers would take the verb for one of its users'.
//!
//! Limits: results are of this host at this moment. The crate prints nothing on its own account; a
//! caller passes functions that show progress.

pub mod bench;
pub mod command_training;
mod crew;
pub mod mapping;
pub mod probe;
pub mod training;

pub use crew::LiveHost;

use anyhow::Result;
use serde::de::DeserializeOwned;

/// Does the work of a worker process if the first argument of this process is a hidden verb;
/// `None` if it is not, and this process is an ordinary run of the program.
///
/// # Errors
/// The worker's failure, for the caller to print and to turn into an exit code.
#[must_use]
pub fn run_worker() -> Option<Result<()>> {
    match std::env::args_os().nth(1)?.to_str()? {
        crew::TRAIN => Some(read_plan().and_then(|plan| training::run_plan(&plan))),
        crew::MAP => Some(read_plan().and_then(crew::commands::run_plan)),
        crew::LOAD => Some(crew::loads::run_load()),
        _ => None,
    }
}

fn read_plan<T: DeserializeOwned>() -> Result<T> {
    let plan = std::env::args().nth(2).unwrap_or_default();
    Ok(serde_json::from_str(&plan)?)
}
