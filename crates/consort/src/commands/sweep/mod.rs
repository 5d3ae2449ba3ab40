//! `consort sweep`: many runs in shards, for any scheduler.

mod numbers;
mod slurm;

use crate::cli::{
    Format, MergeArgs, PlanArgs, ShardArgs, SweepArgs, SweepFolder, SweepStatusArgs, SweepTask,
};
use crate::failure::{bad_input, say};
use crate::output::{self, Column, number};
use crate::progress;
use crate::table_file;
use anyhow::Result;
use consort_experiment::Progress;
use consort_sweep::{Folder, Ran, Status, SweepError, ranges};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Instant;

pub(crate) fn execute(args: &SweepArgs) -> Result<ExitCode> {
    match &args.task {
        SweepTask::Plan(args) => plan(args),
        SweepTask::Run(args) => run(args),
        SweepTask::Submit(args) => slurm::submit(args),
        SweepTask::Status(args) => status(args),
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

fn open(folder: &SweepFolder) -> Result<Folder> {
    Folder::open(&folder.dir).map_err(refusal)
}

fn plan(args: &PlanArgs) -> Result<()> {
    let file = args.file.display().to_string();
    let text = consort_input::text(&args.file);
    let text = text.map_err(|error| bad_input(format!("{file}: {error}")))?;
    let folder = Folder::plan(&args.folder.dir, &file, &text).map_err(refusal)?;
    let plan = folder.as_plan();
    let units: usize = plan.shards.iter().map(|shard| shard.units).sum();
    let what = match folder.as_plan().studies {
        true => "studies",
        false => "runs",
    };
    let told = format!(
        "{units} {what} in {} shards, about {:.0} s of work; 0 to {} are in {}\n",
        plan.shards.len(),
        plan.seconds(),
        plan.shards.len().saturating_sub(1),
        args.folder.dir.display(),
    );
    Ok(output::people(&mut output::stdout(), &told)?)
}

fn run(args: &ShardArgs) -> Result<()> {
    let folder = open(&args.folder)?;
    let count = folder.as_plan().shards.len();
    // One process is one task of a scheduler, which says how many PUs it has.
    let workers = args.jobs.asked().unwrap_or(NonZeroUsize::MIN);
    for number in numbers::read(&args.shards, count)? {
        let bar = progress::counted("runs");
        let tell = |at: Progress| bar.at(at.done, at.total);
        let start = Instant::now();
        let ran = folder.run(number, workers, &tell);
        bar.finish();
        let seconds = start.elapsed().as_secs_f64();
        say(&match ran.map_err(refusal)? {
            Ran::Now(path) => format!("shard {number}: {} in {seconds:.1} s", path.display()),
            Ran::Before(path) => format!("shard {number}: {} is there", path.display()),
        });
    }
    Ok(())
}

/// The JSON document of `status`.
#[derive(Serialize)]
struct Document {
    shards: usize,
    done: usize,
    missing: Vec<usize>,
    missing_s: f64,
    foreign: usize,
}

impl From<Status> for Document {
    fn from(status: Status) -> Self {
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
const MISSING: &[Column<usize>] = &[number("missing", ToString::to_string)];

fn status(args: &SweepStatusArgs) -> Result<()> {
    let folder = open(&args.folder)?;
    let status = Document::from(folder.status().map_err(refusal)?);
    table_file::list(args.list.out.as_deref(), MISSING, &status.missing)?;
    let mut out = output::stdout();
    match args.format {
        Format::Json => output::json(&mut out, &status),
        Format::Csv => output::csv(&mut out, MISSING, &status.missing),
        Format::Table => Ok(output::people(&mut out, &told(&status))?),
    }
}

fn told(status: &Document) -> String {
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
