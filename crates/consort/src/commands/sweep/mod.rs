//! `consort sweep`: many runs in shards, for any scheduler.

mod numbers;
mod slurm;

use crate::cli::{
    MergeArgs, OutputFormat, PlanArgs, ShardArgs, SweepArgs, SweepFolder, SweepStatusArgs,
    SweepTask,
};
use crate::failure::{bad_input, say};
use crate::output::{self, OutputColumn, number};
use crate::progress;
use crate::table_file;
use anyhow::Result;
use consort_experiment::StageProgress;
use consort_lab::sweep::{ShardFolder, ShardOutcome, SweepError, SweepStatus, ranges};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Instant;

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
    let what = match folder.as_plan().studies {
        true => "studies",
        false => "runs",
    };
    let reported = format!(
        "{units} {what} in {} shards, about {:.0} s of work; 0 to {} are in {}\n",
        plan.shards.len(),
        plan.seconds(),
        plan.shards.len().saturating_sub(1),
        args.folder.dir.display(),
    );
    Ok(output::print_text(&mut output::stdout(), &reported)?)
}

fn run(args: &ShardArgs) -> Result<()> {
    let folder = open(&args.folder)?;
    let count = folder.as_plan().shards.len();
    // One process is one task of a scheduler, which says how many PUs it has.
    let workers = args.jobs.requested_workers().unwrap_or(NonZeroUsize::MIN);
    for number in numbers::read(&args.shards, count)? {
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

impl From<SweepStatus> for SweepStatusDocument {
    fn from(status: SweepStatus) -> Self {
        Self {
            shards: status.shards,
            done: status.shards - status.missing.len(),
            missing: status.missing,
            missing_s: status.missing_s,
            foreign: status.foreign,
        }
    }
}

/// Shards without a result.
const MISSING: &[OutputColumn<usize>] = &[number("missing", ToString::to_string)];

fn show_status(args: &SweepStatusArgs) -> Result<()> {
    let folder = open(&args.folder)?;
    let status = SweepStatusDocument::from(folder.status().map_err(refusal)?);
    table_file::write_list(args.list.out.as_deref(), MISSING, &status.missing)?;
    let mut out = output::stdout();
    match args.format {
        OutputFormat::Json => output::write_json(&mut out, &status),
        OutputFormat::Csv => output::write_csv(&mut out, MISSING, &status.missing),
        OutputFormat::Table => Ok(output::print_text(&mut out, &status_text(&status))?),
    }
}

fn status_text(status: &SweepStatusDocument) -> String {
    let mut text = format!(
        "{} of {} shards have a result\n",
        status.done, status.shards
    );
    if !status.missing.is_empty() {
        let missing = ranges(&status.missing);
        text += &format!(
            "missing: {missing}, about {:.0} s of work\n",
            status.missing_s
        );
    }
    if status.foreign > 0 {
        let foreign = status.foreign;
        text += &format!("{foreign} results are of other plans, or of another version\n");
    }
    text
}

fn merge(args: &MergeArgs) -> Result<()> {
    let folder = open(&args.folder)?;
    folder.merge(&args.out).map_err(refusal)
}
