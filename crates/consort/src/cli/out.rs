//! Files of tables, told from other results by how their names end.

use clap::Args;
use std::path::{Path, PathBuf};

/// A file for every number of what is printed.
#[derive(Clone, Debug, Args)]
pub(crate) struct NumbersOut {
    /// Write every number to FILE.csv, FILE.arrow or FILE.parquet, one per row: case, policy, seed, program, measure, value, unit
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// A file for a list.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListOut {
    /// Write the list to FILE.csv, FILE.arrow or FILE.parquet as well, with the columns of --format csv
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// The folder or file of the verb's own among the names that `--out` was given.
pub(crate) fn own_output(out: &[PathBuf]) -> Option<&Path> {
    let mut others = out.iter().filter(|path| !consort_data::is_table_path(path));
    others.next().map(PathBuf::as_path)
}

/// The table's file among the names that `--out` was given.
pub(crate) fn table_output(out: &[PathBuf]) -> Option<&Path> {
    let mut tables = out.iter().filter(|path| consort_data::is_table_path(path));
    tables.next().map(PathBuf::as_path)
}
