//! `--out FILE` of simulated runs: every number, one per row.

use crate::cli::SetupArgs;
use crate::table_file::TableFile;
use anyhow::Result;
use consort_experiment::RunResult;
use consort_experiment::long;

/// The file that was asked for about one workload on one machine.
pub(crate) struct LongFile {
    file: TableFile,
    case: String,
}

impl LongFile {
    /// Begins the file, if one was asked for.
    pub(crate) fn begin(setup: &SetupArgs, workload: &str) -> Result<Self> {
        Ok(Self {
            file: TableFile::begin(setup.out.as_deref())?,
            case: long::case(workload, &setup.machine),
        })
    }

    /// Writes the file.
    pub(crate) fn write(self, runs: &[RunResult]) -> Result<()> {
        self.file.write(|| long::of_runs(&self.case, runs))
    }
}
