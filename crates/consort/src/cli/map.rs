//! Arguments of `map`.

use super::count::{count_parser, seed_parser};
use super::time::parse_simulated;
use super::values::{self, LIVE};
use super::{Jobs, OutputFormat};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `map`.
#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// Machine to simulate, NAME or FILE.toml as `consort machine --list` has them; or `live`
    #[arg(short, long, value_name = "MACHINE", default_value = LIVE, add = values::machines_and_live())]
    pub(crate) machine: String,
    /// Programs on a simulated machine: streamcluster@4+facesim@4
    #[arg(short, long, value_name = "WORKLOAD", conflicts_with = "command", add = values::workloads())]
    pub(crate) workload: Option<String>,
    /// A program on this machine, with its arguments as a shell would part them; once per program
    #[arg(short, long, value_name = "CMD", add = values::command())]
    pub(crate) command: Vec<String>,
    /// Mappings, comma-separated: os, iso, int, spr; or `all` that differ, and os
    #[arg(long, value_name = "MAPPINGS", default_value = "os,iso,int,spr", add = values::mappings())]
    pub(crate) mappings: String,
    /// Mappings that `all` may make
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = count_parser::<usize>(1..=1_000_000))]
    pub(crate) bound: usize,
    /// Threads of each command for `all`, comma-separated; where they are not given, one each
    #[arg(long, value_name = "N", value_delimiter = ',', requires = "command", value_parser = count_parser::<usize>(1..=65_536))]
    pub(crate) threads: Vec<usize>,
    /// Repetitions of each mapping; on simulated machines with successive seeds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_parser::<u32>(1..=1_000))]
    pub(crate) runs: u32,
    /// Number of runs of the longest program in each
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count_parser::<u32>(1..=1_000))]
    pub(crate) times: u32,
    /// Time that each program's work takes alone, simulated
    #[arg(long, value_name = "TIME", value_parser = parse_simulated, default_value = "1s")]
    pub(crate) alone: Duration,
    /// Model of the operating system beneath the mappings, simulated
    #[arg(long, value_name = "NAME", default_value = "linux")]
    pub(crate) os: String,
    /// From which relative change on the use of a resource counts as varying
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = parse_share)]
    pub(crate) varies: f64,
    /// From which relative change on time, or cycles by one cause, count as moved
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = parse_share)]
    pub(crate) moves: f64,
    /// Seed of all randomness, simulated
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    /// Send what commands print to stderr instead of /dev/null
    #[arg(long, requires = "command")]
    pub(crate) show_output: bool,
    /// Folder for tables, figures and a page that opens from disk, made if it is not there; or FILE.csv, FILE.arrow or FILE.parquet for every number, one per row: case, policy, seed, program, measure, value, unit; or both, each with its --out
    #[arg(long, value_name = "DIR|FILE")]
    pub(crate) out: Vec<PathBuf>,
    /// Number of runs at a time.
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Output format; csv has a line per value
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|s| (0.0..=1.0).contains(s));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}
