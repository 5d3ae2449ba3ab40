//! `--out FILE.csv`, `.arrow` or `.parquet`: what a verb prints, for data frames.

use crate::cli::{self, SetupArgs};
use crate::failure::bad_input;
use crate::output::OutputColumn;
use anyhow::Result;
use consort_data::{List, Table, TableSink};
use consort_experiment::{RunResult, long};
use std::path::{Path, PathBuf};

/// The file that was asked for, begun before anything is run, so that a bad path wastes no time.
pub(crate) struct TableOutput(Option<TableSink>);

impl TableOutput {
    /// Begins the file, if one was requested.
    pub(crate) fn begin(out: Option<&Path>) -> Result<Self> {
        let sink = out.map(TableSink::create).transpose();
        Ok(Self(sink.map_err(bad_input)?))
    }

    /// Begins the file, if one was asked for beside a folder or file of the verb's own.
    pub(crate) fn begin_from_out(out: &[PathBuf]) -> Result<Self> {
        let tables = out.iter().filter(|path| consort_data::is_table_path(path));
        let tables = tables.count();
        if tables > 1 || out.len() - tables > 1 {
            let names = out.iter().map(|path| path.display().to_string());
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(bad_input(format!(
                "--out {names}: too many; expected at most one table (.csv, .arrow or .parquet) \
                 and one other"
            )));
        }
        Self::begin(cli::table_output(out))
    }

    /// Adds a table, which is made only where there is a file.
    pub(crate) fn add(&mut self, table: impl FnOnce() -> Table) -> Result<()> {
        if let Some(sink) = &mut self.0 {
            sink.write(&table())?;
        }
        Ok(())
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<()> {
        Ok(self.0.map_or(Ok(()), TableSink::finish)?)
    }

    /// Writes a file of one table.
    pub(crate) fn write(mut self, table: impl FnOnce() -> Table) -> Result<()> {
        self.add(table)?;
        self.finish()
    }
}

/// Writes a list to a file, if one was asked for, with the columns that its CSV has on stdout.
pub(crate) fn write_list<R>(
    out: Option<&Path>,
    columns: &[OutputColumn<R>],
    rows: &[R],
) -> Result<()> {
    TableOutput::begin(out)?.write(|| List::new(columns, rows).to_table())
}

/// The requested file about one workload on one machine.
pub(crate) struct LongTableFile {
    file: TableOutput,
    case: String,
}

impl LongTableFile {
    /// Begins the file, if one was requested.
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
