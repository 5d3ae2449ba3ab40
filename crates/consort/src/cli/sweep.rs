//! Arguments of `sweep`.

use super::count::count_parser;
use super::{Jobs, ListOut, OutputFormat};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Action on the sweep.
    #[command(subcommand)]
    pub(crate) task: SweepTask,
}

/// Actions on a sweep.
#[derive(Debug, Subcommand)]
pub(crate) enum SweepTask {
    /// Cut the runs that FILE describes into numbered shards
    #[command(after_help = "Example: consort sweep plan caches.toml --dir caches")]
    Plan(PlanArgs),
    /// Run shards; what has a result is not run again
    #[command(after_help = "Example: consort sweep run 7 --dir caches\n\
                            Example: consort sweep run 0-9,12 --dir caches\n\
                            Example: consort sweep run all --dir caches")]
    Run(ShardArgs),
    /// Hand the shards that have no result to a scheduler
    #[command(
        after_help = "Example: consort sweep submit --slurm --dir caches --partition short --time 10:00"
    )]
    Submit(SubmitArgs),
    /// Tell which shards have a result
    #[command(after_help = "Example: consort sweep status --dir caches")]
    Status(SweepStatusArgs),
    /// Join all results into one table
    #[command(after_help = "Example: consort sweep merge --dir caches --out caches.csv")]
    Merge(MergeArgs),
}

/// The folder of a sweep.
#[derive(Debug, Args)]
pub(crate) struct SweepFolder {
    /// Folder of the plan and the results; `plan` makes it
    #[arg(short, long, value_name = "DIR", default_value = "consort-sweep")]
    pub(crate) dir: PathBuf,
}

/// Arguments of `sweep plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Description of the sweep; `consort schema sweep` has the format
    pub(crate) file: PathBuf,
    /// Folder of the sweep.
    #[command(flatten)]
    pub(crate) folder: SweepFolder,
}

/// Arguments of `sweep run`.
#[derive(Debug, Args)]
pub(crate) struct ShardArgs {
    /// Numbers of shards, as 7, 0-9 or 0-9,12; or `all`
    #[arg(required = true, value_name = "N")]
    pub(crate) shards: Vec<String>,
    /// Folder of the sweep.
    #[command(flatten)]
    pub(crate) folder: SweepFolder,
    /// Number of runs at a time.
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

/// Arguments of `sweep submit`.
#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// To Slurm, as array jobs that are queued again when a node fails
    #[arg(long, required = true)]
    pub(crate) slurm: bool,
    /// Partition; the cluster's default if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Account that is charged; the user's default if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Time limit of a shard, as Slurm takes it: minutes, or HH:MM:SS; the partition's if not given
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Memory of a shard, as Slurm takes it
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    pub(crate) mem: String,
    /// Worker threads of a shard
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_parser::<u32>(1..=1024))]
    pub(crate) cpus: u32,
    /// Tasks of one array job; not more than the cluster's MaxArraySize less one
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = count_parser::<u32>(1..=4_000_000))]
    pub(crate) array_size: u32,
    /// Write the scripts and print how they would be submitted, and submit nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Folder of the sweep.
    #[command(flatten)]
    pub(crate) folder: SweepFolder,
}

/// Arguments of `sweep status`.
#[derive(Debug, Args)]
pub(crate) struct SweepStatusArgs {
    /// Folder of the sweep.
    #[command(flatten)]
    pub(crate) folder: SweepFolder,
    /// A file beside what is printed.
    #[command(flatten)]
    pub(crate) list: ListOut,
    /// Output format; csv lists the shards that are missing
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Arguments of `sweep merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// FILE.csv, FILE.arrow or FILE.parquet: a row for each number, with case, policy, seed,
    /// program, measure, value, unit
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Folder of the sweep.
    #[command(flatten)]
    pub(crate) folder: SweepFolder,
}
