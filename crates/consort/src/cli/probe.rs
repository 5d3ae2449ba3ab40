//! Arguments of `machine probe`.

use super::time::parse_simulated;
use super::{ListOut, OutputFormat};
use clap::Args;
use consort_core::PuSet;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `machine probe`.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Time for the whole, about; pairs that do not fit are left out, and said to be
    #[arg(long, value_name = "TIME", value_parser = parse_simulated, default_value = "30s")]
    pub(crate) seconds: Duration,
    /// Fewer and shorter runs: 3s
    #[arg(long, conflicts_with = "seconds")]
    pub(crate) quick: bool,
    /// Only these PUs, for example 0-3,8; all that may be used if not given
    #[arg(long, value_name = "LIST")]
    pub(crate) pus: Option<PuSet>,
    /// Write what was decided to FILE, for --topology
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// A file beside what is printed.
    #[command(flatten)]
    pub(crate) list: ListOut,
    /// Output format; csv lists every measurement
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}
