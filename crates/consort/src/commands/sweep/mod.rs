//! `consort sweep`: many runs in shards, for any scheduler.

mod slurm;

use crate::failure::{bad_input, say};
use crate::options::{Jobs, ListOut, NUMBERS, TABLE};
use crate::output::file::write_list;
use crate::output::{self, OutputColumn, OutputFormat, number};
use crate::progress;
use anyhow::Result;
use clap::{Args, Subcommand};
use consort_experiment::StageProgress;
use consort_lab::sweep::{ShardFolder, ShardOutcome, SweepError, ranges};
use serde::Serialize;
use slurm::SubmitArgs;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    #[command(subcommand)]
    pub(crate) task: SweepTask,
}

/// Actions on a sweep.
#[derive(Debug, Subcommand)]
pub(crate) enum SweepTask {
    /// Cut the runs that FILE describes into numbered shards
    #[command(after_help = "Example: consort sweep plan caches.toml --dir caches")]
    Plan(PlanArgs),
    /// Run shards that have no result yet
    #[command(after_help = "Example: consort sweep run 7 --dir caches\n\
                            Example: consort sweep run 0-9,12 --dir caches\n\
                            Example: consort sweep run all --dir caches")]
    Run(ShardArgs),
    /// Submit the shards that have no result to a scheduler
    #[command(
        after_help = "Example: consort sweep submit --slurm --dir caches --partition short --time 10:00"
    )]
    Submit(SubmitArgs),
    /// Show how many shards have a result, and which are missing
    #[command(after_help = "Example: consort sweep status --dir caches")]
    Status(SweepStatusArgs),
    /// Join all results into one table
    #[command(after_help = "Example: consort sweep merge --dir caches --out caches.csv")]
    Merge(MergeArgs),
}

/// The folder of a sweep.
#[derive(Debug, Args)]
pub(crate) struct SweepFolder {
    /// Folder of the plan and the results; `plan` creates it
    #[arg(short, long, value_name = "DIR", default_value = "consort-sweep")]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Description of the sweep; `consort list schemas sweep` prints its format
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) folder: SweepFolder,
}

#[derive(Debug, Args)]
pub(crate) struct ShardArgs {
    /// Numbers of shards, as 7, 0-9 or 0-9,12; or `all`
    #[arg(required = true, value_name = "N")]
    pub(crate) shards: Vec<String>,
    #[command(flatten)]
    pub(crate) folder: SweepFolder,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
}

#[derive(Debug, Args)]
pub(crate) struct SweepStatusArgs {
    #[command(flatten)]
    pub(crate) folder: SweepFolder,
    #[command(flatten)]
    pub(crate) list: ListOut,
    /// Output format; csv lists the shards that are missing
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    #[arg(short, long, value_name = "PATH", help = format!("Write every number to {TABLE}, {NUMBERS}"))]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) folder: SweepFolder,
}

pub(crate) fn execute(args: &SweepArgs) -> Result<ExitCode> {
    match &args.task {
        SweepTask::Plan(args) => plan(args),
        SweepTask::Run(args) => run(args),
        SweepTask::Submit(args) => slurm::submit(args),
        SweepTask::Status(args) => show_status(args),
        SweepTask::Merge(args) => merge(args),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn refusal(error: SweepError) -> anyhow::Error {
    if error.is_input() {
        bad_input(error)
    } else {
        error.into()
    }
}

fn open(folder: &SweepFolder) -> Result<ShardFolder> {
    ShardFolder::open(&folder.dir).map_err(refusal)
}

fn plan(args: &PlanArgs) -> Result<()> {
    let file = args.file.display().to_string();
    let text = consort_describe::input::read_text(&args.file);
    let text = text.map_err(|error| bad_input(format!("{file}: {error}")))?;
    let folder = ShardFolder::plan(&args.folder.dir, &file, &text).map_err(refusal)?;
    let plan = folder.as_plan();
    let units: usize = plan.shards.iter().map(|shard| shard.units).sum();
    let what = match plan.studies {
        true => "studies",
        false => "runs",
    };
    let reported = format!(
        "{units} {what} in {}, about {:.0} s of work; 0 to {} are in {}\n",
        output::count(plan.shards.len(), "shard"),
        plan.seconds(),
        plan.shards.len().saturating_sub(1),
        args.folder.dir.display(),
    );
    output::print_text(&reported)
}

fn run(args: &ShardArgs) -> Result<()> {
    let folder = open(&args.folder)?;
    let count = folder.as_plan().shards.len();
    // One process is one task of a scheduler, which says how many CPUs it has.
    let workers = args.jobs.requested_workers().unwrap_or(NonZeroUsize::MIN);
    for number in read_numbers(&args.shards, count)? {
        let bar = progress::start_meter("runs");
        let report_progress = |at: StageProgress| bar.set_done(at.done, at.total);
        let start = Instant::now();
        let ran = folder.run(number, workers, &report_progress);
        bar.finish();
        let seconds = start.elapsed().as_secs_f64();
        say(&match ran.map_err(refusal)? {
            ShardOutcome::Now(path) => {
                format!("shard {number}: {} in {seconds:.1} s", path.display())
            }
            ShardOutcome::Before(path) => format!("shard {number}: {} is there", path.display()),
        });
    }
    Ok(())
}

/// The JSON document of `status`.
#[derive(Serialize)]
struct SweepStatusDocument {
    shards: usize,
    done: usize,
    missing: Vec<usize>,
    missing_s: f64,
    foreign: usize,
}

const MISSING: &[OutputColumn<usize>] = &[number("missing", ToString::to_string)];

fn show_status(args: &SweepStatusArgs) -> Result<()> {
    let status = open(&args.folder)?.status().map_err(refusal)?;
    let status = SweepStatusDocument {
        shards: status.shards,
        done: status.shards - status.missing.len(),
        missing: status.missing,
        missing_s: status.missing_s,
        foreign: status.foreign,
    };
    write_list(args.list.out.as_deref(), MISSING, &status.missing)?;
    output::print(args.format, MISSING, &status.missing, &status, || {
        let mut text = format!(
            "{} of {} have a result\n",
            status.done,
            output::count(status.shards, "shard")
        );
        if !status.missing.is_empty() {
            text += &format!(
                "missing: {}, about {:.0} s of work\n",
                ranges(&status.missing),
                status.missing_s
            );
        }
        if status.foreign > 0 {
            let foreign = output::count(status.foreign, "result");
            text += &format!("of other plans, or of another version: {foreign}\n");
        }
        text
    })
}

fn merge(args: &MergeArgs) -> Result<()> {
    open(&args.folder)?.merge(&args.out).map_err(refusal)
}

const ALL_SHARDS: &str = "all";

/// Reads numbers below `count`, as `7`, `0-9`, `0-9,12` or `all`; ascending, each once.
fn read_numbers(texts: &[String], count: usize) -> Result<Vec<usize>> {
    let mut numbers = BTreeSet::new();
    for part in texts.iter().flat_map(|text| text.split(',')) {
        if part == ALL_SHARDS {
            numbers.extend(0..count);
            continue;
        }
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let span = first.parse().ok().zip(last.parse().ok());
        let span = span.filter(|(first, last): &(usize, usize)| first <= last);
        let (first, last) = span.ok_or_else(|| {
            bad_input(format!(
                "shard '{part}'; expected numbers such as 7, 0-9 or 0-9,12, or all"
            ))
        })?;
        if last >= count {
            let most = count.saturating_sub(1);
            return Err(bad_input(format!(
                "there is no shard {last}; the plan has 0 to {most}"
            )));
        }
        numbers.extend(first..=last);
    }
    Ok(numbers.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_lab::sweep::ranges;
    use proptest::prelude::*;

    fn read(texts: &[&str]) -> Result<Vec<usize>> {
        read_numbers(
            &texts.iter().map(ToString::to_string).collect::<Vec<_>>(),
            20,
        )
    }

    #[test]
    fn numbers_spans_and_all_are_read() {
        assert_eq!(read(&["7", "0-2,2"]).unwrap(), [0, 1, 2, 7]);
        assert_eq!(read(&["all"]).unwrap().len(), 20);
        for (text, expected) in [
            (
                "x",
                "shard 'x'; expected numbers such as 7, 0-9 or 0-9,12, or all",
            ),
            (
                "5-3",
                "shard '5-3'; expected numbers such as 7, 0-9 or 0-9,12, or all",
            ),
            ("3-20", "there is no shard 20; the plan has 0 to 19"),
        ] {
            assert_eq!(read(&[text]).unwrap_err().to_string(), expected);
        }
    }

    proptest! {
        #[test]
        fn written_numbers_are_read_back(numbers in prop::collection::btree_set(0usize..20, 1..20)) {
            let numbers: Vec<usize> = numbers.into_iter().collect();
            prop_assert_eq!(read(&[&ranges(&numbers)]).unwrap(), numbers);
        }
    }
}
