//! Arguments of the verbs that repeat, measure and check: studies, benches, validation.

use super::count::seed_parser;
use super::run::watch_choices;
use super::values;
use super::{Jobs, NumbersOut, OutputFormat};
use clap::Args;
use consort_linux::live::WatchRate;
use std::path::PathBuf;

/// Arguments of `reproduce`.
#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// Studies by id or by file (FILE.toml), `all` that come with Consort, or `list` to list them
    #[arg(required = true, value_name = "ID", add = values::study_ids())]
    pub(crate) studies: Vec<String>,
    /// The shape of the results in seconds, from fewer and shorter runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed in place of each study's own
    #[arg(long, value_name = "N", value_parser = seed_parser())]
    pub(crate) seed: Option<u64>,
    /// Folder for tables, figures and pages, made if it is not there; consort-studies if not given. Given once more, FILE.csv, FILE.arrow or FILE.parquet for every number, one per row: case, policy, seed, program, measure, value, unit
    #[arg(short, long, value_name = "DIR|FILE")]
    pub(crate) out: Vec<PathBuf>,
    /// CSV file of published figures (study,row,column,value) to set beside ours
    #[arg(long, value_name = "FILE")]
    pub(crate) reference: Option<PathBuf>,
    /// Number of runs at a time.
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Output format; csv has a line per number, with the columns of a reference file
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Benches; all of them if none is given
    #[arg(value_name = "NAME", add = values::benches())]
    pub(crate) names: Vec<String>,
    /// List the benches instead of running them
    #[arg(long)]
    pub(crate) list: bool,
    /// Few and short repetitions: whether it works, not how fast it is
    #[arg(long)]
    pub(crate) quick: bool,
    /// Rounds that count; pairs of runs of `overhead`, of which there are 12 if not given
    #[arg(short = 'n', long, value_name = "PAIRS")]
    pub(crate) pairs: Option<usize>,
    /// Only this load of `overhead`: pgbench, redis, nginx, serve, churn, forks, ping-pong or loops
    #[arg(long, value_name = "LOAD")]
    pub(crate) only: Option<String>,
    /// Policy of the managed runs of `overhead`; none if not given
    #[arg(long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// Rate at which the managed runs of `overhead` are watched
    #[arg(long, value_name = "RATE", value_parser = watch_choices())]
    pub(crate) watch: Option<WatchRate>,
    /// Compare `overhead` with `perf record -a` as well
    #[arg(long)]
    pub(crate) with_perf: bool,
    /// A file beside what is printed.
    #[command(flatten)]
    pub(crate) numbers: NumbersOut,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Arguments of `validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Only this group of checks; can be given several times. consistency, independent,
    /// conservation, placement or speed, which are run if none is given, or reference
    #[arg(short, long, value_name = "NAME", add = values::check_groups())]
    pub(crate) group: Vec<String>,
    /// Fewer and shorter runs
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    /// Folder for tables and pictures behind the checks, made if it is not there; or FILE.csv, FILE.arrow or FILE.parquet for every number, one per row: case, policy, seed, program, measure, value, unit; or both, each with its --out
    #[arg(short, long, value_name = "DIR|FILE")]
    pub(crate) out: Vec<PathBuf>,
    /// Number of runs at a time.
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}
