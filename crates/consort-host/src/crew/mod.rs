//! The crew: processes and threads that do known work while something else is measured.
//!
//! Worker processes are this program, started with a hidden verb as its first argument:
//!
//! | arguments | work | protocol |
//! |---|---|---|
//! | `__train PLAN` | pairs of kernels on two CPUs | the plan is JSON; one JSON document per thread
//! on stdout
//! |
//! | `__map PLAN` | commands, again and again | the plan is JSON; one JSON document per ended command on stdout |
//! | `__load THREADS SHARE` | threads that work a share of the time, until stdin ends | `ready`, then the steps done for each line on stdin |
//! | `__load NAME SECONDS` | a named load | one JSON document on stdout |

use anyhow::{Context, Result};
use consort_linux::enact::EnactConfig;
use consort_linux::enforce::EnactChoice;
use consort_linux::live::{Host, LiveMachine, LiveSettings, WatchRate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, Write};
use std::process::Command;
use std::time::Duration;

pub(crate) mod commands;
pub(crate) mod kernels;
pub(crate) mod loads;
pub(crate) mod process;

/// Verb of the process that runs training kernels.
pub(crate) const TRAIN: &str = "__train";
/// Verb of the process that runs the commands of a mapping.
pub(crate) const MAP: &str = "__map";
/// Verb of the processes that a bench measures.
pub(crate) const LOAD: &str = "__load";

/// Writes a result as one line, which [`WorkerResults`] reads back.
pub(crate) fn write_line(out: &mut impl Write, result: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *out, result)?;
    writeln!(out)?;
    Ok(())
}

/// Time between two observations of the threads, each of which may place them.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

/// This machine, and the settings with which masks of its threads may be changed.
#[derive(Clone, Debug)]
pub struct LiveHost {
    /// The machine as it was detected.
    pub host: Host,
    /// Journal and guardian, which restore masks even if a run is killed.
    pub enact: EnactConfig,
}

/// Results that a worker process writes to its stdout, one JSON document per line.
///
/// They go to a file, because they are not read while the machine is watched, and a full pipe would
/// stop the worker.
pub(crate) struct WorkerResults(File);

impl LiveHost {
    /// Starts a worker with a plan and watches its threads. `dry_run` leaves them where the kernel
    /// puts them.
    pub(crate) fn launch_worker(
        self,
        verb: &str,
        plan: &impl Serialize,
        dry_run: bool,
        enactors: EnactChoice,
    ) -> Result<(LiveMachine, WorkerResults)> {
        let results = tempfile::tempfile().context("cannot make a temporary file")?;
        let own = std::env::current_exe().context("cannot find the path of this program")?;
        let mut command = Command::new(own);
        command.arg(verb).arg(serde_json::to_string(plan)?);
        command.stdout(results.try_clone()?);
        let settings = LiveSettings {
            interval: INTERVAL,
            watch: WatchRate::Full,
            dry_run,
            override_affinity: false,
            enactors,
            cookies: false,
            pausing: Vec::new(),
            recorded: None,
            enact: self.enact,
        };
        let machine = LiveMachine::launch(self.host, command, settings)?;
        Ok((machine, WorkerResults(results)))
    }
}

impl WorkerResults {
    /// Reads everything that the worker wrote; it has ended.
    pub(crate) fn read<T: DeserializeOwned>(mut self) -> Result<Vec<T>> {
        self.0.rewind()?;
        let mut results = Vec::new();
        for line in BufReader::new(self.0).lines() {
            results.push(serde_json::from_str(&line?)?);
        }
        Ok(results)
    }
}
