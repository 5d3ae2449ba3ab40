//! Flags for the files and the format of a result.

use super::OutputFormat;
use clap::Args;
use std::path::PathBuf;

/// Names of tables that this build writes.
pub(crate) const TABLE: &str = match cfg!(feature = "columnar") {
    true => "PATH.csv, PATH.arrow or PATH.parquet",
    false => "PATH.csv",
};

/// Columns of the table of every number.
pub(crate) const NUMBERS: &str = "one per row: case, policy, seed, program, measure, value, unit";

/// A file for every number of what is printed.
#[derive(Clone, Debug, Args)]
pub(crate) struct NumbersOut {
    #[arg(short, long, value_name = "PATH", help = format!("Write every number to {TABLE}, {NUMBERS}"))]
    pub(crate) out: Option<PathBuf>,
}

/// A file for a list.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListOut {
    #[arg(short, long, value_name = "PATH", help = format!("Write the list to {TABLE}, with the columns of --format csv"))]
    pub(crate) out: Option<PathBuf>,
}

/// A whole list, or one item of it.
#[derive(Debug, Args)]
pub(crate) struct NamedListArgs {
    /// Show only the item of this name, with its details
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) list: ListOut,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Files for a result, by the kind that each ending names.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ResultOut {
    #[arg(short, long, value_name = "PATH", help = format!("Write a page for browsers to PATH.html, the JSON document to PATH.json, or every number to {TABLE}, {NUMBERS}; repeat it for several"))]
    pub(crate) out: Vec<PathBuf>,
    /// Write the page to FILE
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) report_html: Option<PathBuf>,
}
