//! `consort sweep submit --slurm`: array jobs that call `consort sweep run N`.

use super::{SweepFolder, open, refusal};
use crate::failure::bad_input;
use crate::options::count_parser;
use crate::output;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use consort_data::write_atomically;
use consort_lab::sweep::ShardFolder;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    /// Submit to Slurm, as array jobs that are queued again if a node fails
    #[arg(long, required = true)]
    pub(crate) slurm: bool,
    /// Partition; the cluster's default if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) partition: Option<String>,
    /// Account that is charged; the user's default if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Time limit of a shard in Slurm's notation: minutes, or HH:MM:SS; the partition's if not given
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Memory of a shard in Slurm's notation
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    pub(crate) mem: String,
    /// Worker threads of a shard
    #[arg(long, value_name = "N", alias = "cpus", default_value_t = 1, value_parser = count_parser::<u32>(1..=1024))]
    pub(crate) jobs: u32,
    /// Tasks of one array job; at most the cluster's MaxArraySize - 1
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = count_parser::<u32>(1..=4_000_000))]
    pub(crate) array_size: u32,
    /// Write the scripts and print the commands that would submit them
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) folder: SweepFolder,
}

/// Scripts and logs, below the folder of the sweep.
const PLACE: &str = "slurm";

pub(super) fn submit(args: &SubmitArgs) -> Result<()> {
    check_words(args)?;
    let folder = open(&args.folder)?;
    let missing = folder.status().map_err(refusal)?.missing;
    if missing.is_empty() {
        let all = folder.as_plan().shards.len();
        let reported = format!("nothing to submit: all {all} shards have a result\n");
        return output::print_text(&reported);
    }
    for (n, shards) in missing.chunks(args.array_size as usize).enumerate() {
        let script = write(args, &folder, n, shards)?;
        let reported = match args.dry_run {
            true => format!("sbatch {}\n", script.display()),
            false => {
                let job = submit_script(&script)?;
                format!("job {job}: {}\n", output::count(shards.len(), "shard"))
            }
        };
        output::print_text(&reported)?;
    }
    Ok(())
}

/// Checks that values which are copied into scripts are single words, so that a shell cannot read
/// anything else into them.
fn check_words(args: &SubmitArgs) -> Result<()> {
    let given = [
        ("--partition", args.partition.as_deref()),
        ("--account", args.account.as_deref()),
        ("--time", args.time.as_deref()),
        ("--mem", Some(args.mem.as_str())),
    ];
    for (name, value) in given {
        let value = value.unwrap_or("x");
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:,+".contains(c);
        if value.is_empty() || !value.chars().all(plain) {
            return Err(bad_input(format!(
                "{name} '{value}': expected letters, digits and -_.:,+ only"
            )));
        }
    }
    Ok(())
}

/// Writes the list of shards and the script of one array job; returns the path of the script.
fn write(args: &SubmitArgs, folder: &ShardFolder, n: usize, shards: &[usize]) -> Result<PathBuf> {
    // Tasks run on other nodes, in a folder of Slurm's choice before ours.
    let here = std::path::absolute(folder.path())?;
    let place = here.join(PLACE);
    let failed = || format!("cannot write {}", place.display());
    std::fs::create_dir_all(&place).with_context(failed)?;
    let (list, script) = (format!("shards-{n}.txt"), format!("submit-{n}.sh"));
    let lines: String = shards.iter().map(|shard| format!("{shard}\n")).collect();
    write_atomically(&place, &list, lines.as_bytes()).with_context(failed)?;
    let text = text(args, &here, &place.join(list), shards.len())?;
    write_atomically(&place, &script, text.as_bytes()).with_context(failed)?;
    Ok(place.join(script))
}

fn text(args: &SubmitArgs, folder: &Path, list: &Path, tasks: usize) -> Result<String> {
    let log = folder.join(PLACE).join("%A_%a.log");
    let mut text = String::from("#!/bin/sh\n");
    let mut option = |name: &str, value: &str| writeln!(text, "#SBATCH --{name}={value}");
    option("job-name", "consort-sweep")?;
    option("array", &format!("1-{tasks}"))?;
    option("cpus-per-task", &args.jobs.to_string())?;
    option("mem", &args.mem)?;
    option("output", &quote_path(&log)?)?;
    option("open-mode", "append")?;
    option("chdir", &quote_path(&std::env::current_dir()?)?)?;
    let requested = [
        ("partition", &args.partition),
        ("account", &args.account),
        ("time", &args.time),
    ];
    for (name, value) in requested {
        if let Some(value) = value {
            option(name, value)?;
        }
    }
    // A task whose node fails is queued again; its shard was written whole, or not at all.
    text += "#SBATCH --requeue\n";
    writeln!(
        text,
        "shard=$(sed -n \"${{SLURM_ARRAY_TASK_ID}}p\" {})",
        quote_path(list)?
    )?;
    let (program, folder) = (quote_path(&std::env::current_exe()?)?, quote_path(folder)?);
    let jobs = args.jobs;
    writeln!(
        text,
        "exec {program} sweep run \"$shard\" --jobs {jobs} --dir {folder}"
    )?;
    Ok(text)
}

/// A path in quotes that mean the same to a shell and to sbatch.
fn quote_path(path: &Path) -> Result<String> {
    let text = path
        .to_str()
        .filter(|text| !text.contains(['"', '\'', '\\', '$', '`', '\n']));
    let text = text.ok_or_else(|| {
        bad_input(format!(
            "{}: quotes, $ and the like cannot be in a path here",
            path.display()
        ))
    })?;
    Ok(format!("\"{text}\""))
}

/// Submits a script; returns the job's number.
fn submit_script(script: &Path) -> Result<String> {
    let submitted = Command::new("sbatch")
        .arg("--parsable")
        .arg(script)
        .output();
    let submitted = submitted.context("cannot start sbatch; is this a node of a Slurm cluster?")?;
    if !submitted.status.success() {
        let reported = String::from_utf8_lossy(&submitted.stderr);
        return Err(anyhow!(
            "sbatch refused {}: {}",
            script.display(),
            reported.trim()
        ));
    }
    Ok(String::from_utf8_lossy(&submitted.stdout).trim().to_owned())
}
