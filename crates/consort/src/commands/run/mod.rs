//! `consort run`: a command under management.

mod live;
mod models;
mod settle;
mod setup;

use crate::cli::{Format, RunArgs};
use crate::config::{self, RunConfig};
use crate::failure::{as_bad_input, bad_input, warn, with_code};
use crate::output;
use crate::report::{self, COLUMNS, ReportFile, RunReport};
use anyhow::{Context, Result};
use clap::Args;
use consort_core::hint;
use consort_linux::enact::{EnactConfig, LaunchError, runtime_dirs};
use consort_linux::enforce::EnactChoice;
use consort_linux::group::GroupError;
use consort_linux::live::{Host, LaunchSpec, LiveError, Recorded, program_name};
use consort_linux::pause::PauseKind;
use setup::Setup;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Hidden first argument of the process that becomes a guardian.
pub(crate) const GUARDIAN: &str = "__guardian";

/// The policy that changes nothing.
const NONE: &str = "none";

pub(crate) fn execute(args: &RunArgs) -> Result<ExitCode> {
    refuse_unknown_option(args)?;
    let config = config::load(args.config.as_deref()).map_err(|e| as_bad_input(&e))?;
    let host = look(args, &config.run)?;
    let host = crate::host::emulating(host, args.emulate_asymmetry.as_ref())?;
    let mut offers = host.offers();
    let recorded = args.profile.as_deref().map(|path| recorded(path, args));
    let recorded = recorded.transpose()?;
    if let Some(recorded) = &recorded {
        recorded.offer(&mut offers);
    }
    let enact = enactors(args, &config.run, &host)?;
    let setup = Setup::new(args, &config.run, &host.discovery.topology, &offers)?;
    let report_file = args.report.as_deref().map(ReportFile::create).transpose()?;
    let report = live::run(args, &config.run, setup, host, (recorded, enact))?;
    // The command has ended and its status stands, whatever becomes of what is told about it.
    let written = report_file.map_or(Ok(()), |file| file.write(&report));
    for told in [written, show(args, &report)] {
        if let Err(error) = told {
            warn(&error);
        }
    }
    Ok(ExitCode::from(u8::try_from(report.exit_code).unwrap_or(1)))
}

/// This machine, with what its PUs share from the file that was named, if one was.
fn look(args: &RunArgs, config: &RunConfig) -> Result<Host> {
    match (&args.topology, &config.topology) {
        (None, Some(path)) => {
            let host = crate::host::look(Some(path));
            host.map_err(|error| config.blame("topology", &error))
        }
        (named, _) => crate::host::look(named.as_deref()),
    }
}

/// The parser takes whatever it does not know for the command; no command begins with a dash.
fn refuse_unknown_option(args: &RunArgs) -> Result<()> {
    let first = args.command.first().and_then(|word| word.to_str());
    let Some(given) = first.filter(|word| word.starts_with('-')) else {
        return Ok(());
    };
    let command = RunArgs::augment_args(clap::Command::new("run"));
    let longs = command.get_arguments().filter_map(clap::Arg::get_long);
    let known: Vec<String> = longs.map(|long| format!("--{long}")).collect();
    let hint = hint(given, known.iter().map(String::as_str));
    Err(bad_input(format!("unknown option '{given}'; {hint}")))
}

/// The enactors to use; one that is not there is refused before anything is started.
fn enactors(args: &RunArgs, config: &RunConfig, host: &Host) -> Result<EnactChoice> {
    let choice = args.enact.or(config.enact).unwrap_or_default();
    let first = choice.first();
    let statuses = host.enactors.iter();
    match statuses.clone().find(|status| status.name == first) {
        Some(status) if !status.available => Err(bad_input(format!(
            "--enact {first}: {}; `consort machine` lists what there is",
            status.reason
        ))),
        _ => Ok(choice),
    }
}

/// Measures from a file; all groups know it by its whole path.
fn recorded(path: &Path, args: &RunArgs) -> Result<Recorded> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let recorded = Recorded::read(&whole).map_err(|e| bad_input(format!("--profile: {e}")))?;
    let name = program_name(&command(args)?);
    recorded.check(&name).map_err(bad_input)?;
    Ok(recorded)
}

fn command(args: &RunArgs) -> Result<Command> {
    let (program, arguments) = args
        .command
        .split_first()
        .ok_or_else(|| bad_input("no command was given; write consort run -- CMD ARGS"))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

fn launch_spec(
    args: &RunArgs,
    setup: &Setup,
    recorded: Option<Recorded>,
    enactors: EnactChoice,
) -> Result<LaunchSpec> {
    let mut command = command(args)?;
    if args.format != Format::Table {
        // stdout carries exactly one document; the command's own output goes where people look.
        let stderr = std::io::stderr().as_fd().try_clone_to_owned()?;
        command.stdout(stderr);
    }
    // A group may yet settle another policy.
    let changes_nothing = args.dry_run || (setup.spec.name == NONE && args.group.is_none());
    Ok(LaunchSpec {
        command,
        interval: setup.interval,
        dry_run: args.dry_run,
        override_affinity: args.override_affinity,
        enactors,
        pausing: PauseKind::ALL.to_vec(),
        recorded,
        enact: EnactConfig {
            guardian_args: vec![GUARDIAN.into()],
            runtime_dirs: runtime_dirs(),
            changes_nothing,
        },
    })
}

/// A command that cannot be started ends the run with the status that shells and `env` give it.
fn refused(error: LiveError) -> anyhow::Error {
    match error {
        LiveError::Launch(LaunchError::NotFound(_)) => with_code(127, error),
        LiveError::Launch(LaunchError::NotExecutable { .. }) => with_code(126, error),
        LiveError::Group(GroupError::Refused { .. }) => bad_input(error),
        other => other.into(),
    }
}

fn show(args: &RunArgs, report: &RunReport) -> Result<()> {
    let mut out = output::stdout();
    let shown = match args.format {
        Format::Json => output::json(&mut out, report),
        Format::Csv => output::csv(&mut out, COLUMNS, &report.threads),
        Format::Table if args.quiet => Ok(()),
        Format::Table => Ok(output::people_on_stderr(&report::text(
            report,
            output::page::width_of_stderr(),
        ))?),
    };
    shown.context("cannot write the report")
}
