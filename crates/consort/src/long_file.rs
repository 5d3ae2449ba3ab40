//! `--out FILE`: every number of a verb's runs, one per row.

use crate::cli::SetupArgs;
use crate::failure::bad_input;
use anyhow::Result;
use consort_lab::experiment::RunResult;
use consort_lab::long;
use consort_table::Sink;

/// The file that was asked for, begun before anything is run, so that a bad path wastes no time.
pub(crate) struct LongFile {
    sink: Option<Sink>,
    case: String,
}

impl LongFile {
    /// Begins the file, if one was asked for, about a workload.
    pub(crate) fn begin(setup: &SetupArgs, workload: &str) -> Result<Self> {
        let sink = setup.out.as_deref().map(Sink::create).transpose();
        Ok(Self {
            sink: sink.map_err(bad_input)?,
            case: long::case(workload, &setup.machine),
        })
    }

    /// Writes the file.
    pub(crate) fn write(self, runs: &[RunResult]) -> Result<()> {
        if let Some(mut sink) = self.sink {
            sink.write(&long::of_runs(&self.case, runs))?;
            sink.finish()?;
        }
        Ok(())
    }
}
