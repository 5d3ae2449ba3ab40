//! A worker process under the live machine, and the results that it writes.

use anyhow::{Context, Result};
use consort_linux::enact::EnactConfig;
use consort_linux::enforce::EnactChoice;
use consort_linux::live::{Host, LiveMachine, LiveSettings, WatchRate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::process::Command;
use std::time::Duration;

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
