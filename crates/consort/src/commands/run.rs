//! `consort run`: a command under management.

use super::manage::{self, ManageSession, PolicySetup, is_auto};
use crate::cli::{OutputFormat, RecordArgs, RunArgs};
use crate::config::{self, RunConfig};
use crate::failure::{as_bad_input, bad_input, warn, with_code};
use crate::output;
use crate::progress::ProgressVisibility;
use crate::report::{self, COLUMNS, ReportFile, RunReport};
use crate::table_file::TableOutput;
use anyhow::{Context, Result};
use clap::Args;
use consort_core::{SignalOffers, hint};
use consort_data::recording::{RecordingInfo, RecordingWriter};
use consort_linux::control::has_daemon;
use consort_linux::enact::{LaunchError, runtime_dirs};
use consort_linux::enforce::EnactChoice;
use consort_linux::group::{Demands, GroupError, GroupName};
use consort_linux::live::{
    GroupMachine, GroupTarget, Host, JoinOutcome, LiveError, LiveMachine, LiveSettings,
    RecordedMeasures, join_group, program_name,
};
use consort_linux::pause::PauseKind;
use std::cell::RefCell;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime};

pub(crate) fn execute(args: &RunArgs) -> Result<ExitCode> {
    refuse_unknown_option(args)?;
    let config = config::load(args.manage.config.as_deref()).map_err(|e| as_bad_input(&e))?;
    // A group's leader manages the commands of all members.
    let host = match &args.group {
        Some(_) => manage::discover_host_for_others(&args.manage, &config.run)?,
        None => manage::discover_host(&args.manage, &config.run)?,
    };
    let mut offers = host.offers();
    let recorded = args
        .profile
        .as_deref()
        .map(|path| read_measures(path, args));
    let recorded = recorded.transpose()?;
    if let Some(recorded) = &recorded {
        recorded.offer(&mut offers);
    }
    let enact = manage::enactors(&args.manage, &config.run, &host)?;
    let cookies = manage::uses_cookies(&args.manage, &config.run, &host, enact)?;
    let setup = PolicySetup::new(&args.manage, &config.run, &host.discovery.topology, &offers)?;
    let report_file = args.report.as_deref().map(ReportFile::create).transpose()?;
    let page_file = args.report_html.as_deref().map(ReportFile::create);
    let page_file = page_file.transpose()?;
    let table = TableOutput::begin(args.numbers.out.as_deref())?;
    let recorder = recorder(args, &setup, &host, &offers)?;
    let means = RunSetup {
        recorded,
        enact,
        cookies,
        recorder,
    };
    let report = run_command(args, &config.run, setup, host, means)?;
    // The command has ended and its status stands, whatever becomes of what is told about it.
    let written = report_file.map_or(Ok(()), |file| file.write(&report));
    let page = page_file.map_or(Ok(()), |file| write_page(args, &report, file));
    let tabled = table.write(|| report.table(args.manage.seed));
    for reported in [written, page, tabled, show(args, &report)] {
        if let Err(error) = reported {
            warn(&error);
        }
    }
    Ok(ExitCode::from(u8::try_from(report.exit_code).unwrap_or(1)))
}

fn write_page(args: &RunArgs, report: &RunReport, file: ReportFile) -> Result<()> {
    let page = report::html(report, &command_line(args))?;
    file.write_text(page.as_bytes())
}

/// The command as one line.
fn command_line(args: &RunArgs) -> String {
    let words = args.command.iter().map(|word| word.to_string_lossy());
    words.collect::<Vec<_>>().join(" ")
}

/// `consort record`: the same, with a recording.
pub(crate) fn record(args: &RecordArgs) -> Result<ExitCode> {
    let record = args.run.record.clone().or(Some(args.output.clone()));
    execute(&RunArgs {
        record,
        ..args.run.clone()
    })
}

/// Refuses a command with a leading dash: an unknown option, which the parser takes for one.
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

/// Reads measures from a file; all groups know it by its whole path.
fn read_measures(path: &Path, args: &RunArgs) -> Result<RecordedMeasures> {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let recorded =
        RecordedMeasures::read(&whole).map_err(|e| bad_input(format!("--profile: {e}")))?;
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

/// Means that a run works with beside its policy.
struct RunSetup {
    /// Measures from a file.
    recorded: Option<RecordedMeasures>,
    /// Enactors that may keep threads in their places.
    enact: EnactChoice,
    /// True where cores are kept to the threads that plans seat on them.
    cookies: bool,
    /// Recorder of the run; none where it is not recorded.
    recorder: Option<RecordingWriter>,
}

/// The recording that was asked for; refused before anything is started.
fn recorder(
    args: &RunArgs,
    setup: &PolicySetup,
    host: &Host,
    offers: &SignalOffers,
) -> Result<Option<RecordingWriter>> {
    let Some(path) = &args.record else {
        return Ok(None);
    };
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let about = RecordingInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_s: since_1970.map_or(0, |time| time.as_secs()),
        command: command_line(args),
        policy: setup.spec.name.clone(),
        interval_ms: 1e3 * setup.interval.as_secs_f64(),
        topology: host.discovery.topology.clone(),
        machine: offers.machine().to_owned(),
        stack: offers.stack().to_vec(),
        offers: offers.clone(),
    };
    let recorder = RecordingWriter::create(path, &about, args.force).map_err(bad_input)?;
    Ok(Some(recorder))
}

/// Runs the command to its end.
fn run_command(
    args: &RunArgs,
    config: &RunConfig,
    setup: PolicySetup,
    host: Host,
    RunSetup {
        recorded,
        enact,
        cookies,
        recorder,
    }: RunSetup,
) -> Result<RunReport> {
    let recorder_is_there = recorder.is_some();
    let run = ManageSession {
        args: &args.manage,
        config,
        line: progress_visibility(args),
        stdout_taken: args.format != OutputFormat::Table,
        recorder: RefCell::new(recorder),
    };
    let group = args.group.clone().or_else(|| daemon_group(args));
    let group = group.map(|name| group_spec(args, &setup, &name, recorded.as_ref()));
    let mut command = command(args)?;
    if args.format != OutputFormat::Table {
        // stdout carries exactly one document; the command's own output goes where people look.
        let stderr = std::io::stderr().as_fd().try_clone_to_owned()?;
        command.stdout(stderr);
    }
    // A group may yet settle another policy, and hotplug may make placing worthwhile.
    let only_watches = setup.is_watch_only() && args.group.is_none();
    let settings = LiveSettings {
        interval: setup.interval,
        watch: setup.selection().watch(recorder_is_there),
        dry_run: args.manage.dry_run,
        override_affinity: args.manage.override_affinity,
        enactors: enact,
        cookies,
        pausing: PauseKind::ALL.to_vec(),
        recorded,
        enact: manage::enact_config(args.manage.dry_run || only_watches),
    };
    let Some(group) = group else {
        let machine = LiveMachine::launch(host, command, settings).map_err(launch_failure)?;
        let machine = GroupMachine::new(machine, None);
        return run.manage(setup.rechoose_for_machine(&machine)?, machine);
    };
    match join_group(host, command, settings, group).map_err(launch_failure)? {
        JoinOutcome::Leads(machine) => run.manage(setup.rechoose_for_machine(&*machine)?, *machine),
        JoinOutcome::Follows(follower) => run.follow(*follower),
    }
}

/// The group of this user's daemon, if one runs and nothing is asked for that it may not do: its
/// policy and quantum hold, and it tells what it sees by `consort status`.
fn daemon_group(args: &RunArgs) -> Option<GroupName> {
    let manage = &args.manage;
    let asks = manage.policy.is_some()
        || manage.interval.is_some()
        || manage.emulate_asymmetry.is_some()
        || manage.enact.is_some()
        || manage.cookies
        || manage.dry_run
        || manage.override_affinity
        || manage.watch.is_some()
        || manage.topology.is_some()
        || manage.model.is_some()
        || args.profile.is_some()
        || args.report.is_some()
        || args.report_html.is_some()
        || args.record.is_some()
        || args.numbers.out.is_some()
        || args.format != OutputFormat::Table;
    let is_handed_over = !args.no_daemon && !asks && has_daemon(&runtime_dirs());
    is_handed_over.then(GroupName::for_daemon)
}

/// Describes the group to join: what the command line asks for must hold there; the rest is the
/// leader's.
fn group_spec(
    args: &RunArgs,
    setup: &PolicySetup,
    name: &GroupName,
    recorded: Option<&RecordedMeasures>,
) -> GroupTarget {
    GroupTarget {
        name: name.clone(),
        demands: Demands {
            // Which policy is best is for whoever leads to find out.
            policy: args.manage.policy.clone().filter(|policy| !is_auto(policy)),
            interval_ms: args.manage.interval.map(millis),
            dry_run: args.manage.dry_run,
            profile: recorded.map(|recorded| recorded.origin().to_owned()),
        },
        policy: setup.requested.clone(),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn progress_visibility(args: &RunArgs) -> ProgressVisibility {
    match (args.quiet, args.progress) {
        (true, _) => ProgressVisibility::Never,
        (_, true) => ProgressVisibility::Requested,
        (false, false) => ProgressVisibility::Unshared,
    }
}

/// Ends the run with the status that shells and `env` give a command that cannot be started.
fn launch_failure(error: LiveError) -> anyhow::Error {
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
        OutputFormat::Json => output::write_json(&mut out, report),
        OutputFormat::Csv => output::write_csv(&mut out, COLUMNS, &report.threads),
        OutputFormat::Table if args.quiet => Ok(()),
        OutputFormat::Table => Ok(output::print_text_to_stderr(&report::text(
            report,
            output::page::stderr_width(),
        ))?),
    };
    shown.context("cannot write the report")
}
