//! `--out FILE` of simulated runs: every number, one per row.

use crate::cli::SetupArgs;
use crate::table_file::TableOutput;
use anyhow::Result;
use consort_experiment::RunResult;
use consort_experiment::long;

/// The file that was asked for about one workload on one machine.
pub(crate) struct LongTableFile {
    file: TableOutput,
    case: String,
}

impl LongTableFile {
    /// Begins the file, if one was asked for.
    pub(crate) fn begin(setup: &SetupArgs, workload: &str) -> Result<Self> {
        Ok(Self {
            file: TableOutput::begin(setup.out.as_deref())?,
            case: long::case_name(workload, &setup.machine),
        })
    }

    /// Writes the file.
    pub(crate) fn write(self, runs: &[RunResult]) -> Result<()> {
        self.file.write(|| long::long_table(&self.case, runs))
    }
}
