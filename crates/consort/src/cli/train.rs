//! Arguments of `train`: models from runs of programs together.

use super::count::{count_parser, seed_parser};
use super::time::parse_simulated;
use super::values::{self, LIVE};
use super::{Jobs, OutputFormat};
use clap::Args;
use consort_core::split_unquoted;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// Machine to train on: NAME or FILE.toml for a simulated one, or `live` for this one
    #[arg(short, long, value_name = "MACHINE", default_value = LIVE, add = values::machines_and_live())]
    pub(crate) machine: String,
    /// Training programs by comma: simulated ones (all of spec2006 if not given), or kernels on
    /// the live machine; quotes let a path contain a comma
    #[arg(short, long, value_name = "PROGRAMS", add = values::program_list())]
    programs: Vec<String>,
    /// Threads per core to train for, by comma; 2 and, where a simulated core takes as many, 4
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = count_parser::<u32>(2..=8))]
    pub(crate) ways: Vec<u32>,
    /// Time of each run; 10s simulated, 500ms live
    #[arg(long, value_name = "TIME", value_parser = parse_simulated)]
    pub(crate) seconds: Option<Duration>,
    /// Parts into which the programs are divided, each held out once to test on
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count_parser::<u32>(2..=100))]
    pub(crate) folds: u32,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    /// Write the model to FILE; or every number to FILE.csv, FILE.arrow or FILE.parquet, one per row: case, policy, seed, program, measure, value, unit; or both, each with its --out
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Vec<PathBuf>,
    /// Replace FILE if it exists
    #[arg(long, requires = "out")]
    pub(crate) force: bool,
    /// Shorter and fewer runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Treat two PUs of the live machine as if they shared a core
    #[arg(long, value_name = "PU,PU", value_delimiter = ',', num_args = 1)]
    pub(crate) as_siblings: Vec<u32>,
    /// Number of runs at a time.
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Output format; csv lists the components
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

impl TrainArgs {
    /// The names in `--programs`, with their quotes.
    pub(crate) fn programs(&self) -> Vec<&str> {
        let lists = self.programs.iter();
        let names = lists.flat_map(|list| split_unquoted(list, ',', &[]));
        names.map(str::trim).collect()
    }
}
