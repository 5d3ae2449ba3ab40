//! `consort run`: a command under management.

use super::manage::{self, ManageArgs, ManageSession, PolicySetup, TrialArgs, is_auto};
use crate::config::{self, ConsortConfig};
use crate::failure::{as_bad_input, bad_input, warn, with_code};
use crate::options::NumbersOut;
use crate::output::OutputFormat;
use crate::output::file::{ReportFile, TableOutput};
use crate::progress::ProgressVisibility;
use crate::report::{self, RunReport};
use crate::values;
use anyhow::Result;
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
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime};

#[derive(Clone, Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) manage: ManageArgs,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
    /// Join the group NAME: the programs of all its runs share the machine under one policy, which
    /// pauses them in turn and gives them sets of cores
    #[arg(short, long, value_name = "NAME")]
    pub(crate) group: Option<GroupName>,
    /// Write the report as JSON to FILE as well
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write the report as a page for browsers to FILE as well
    #[arg(long, value_name = "FILE")]
    pub(crate) report_html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) numbers: NumbersOut,
    /// Output format of the report; json and csv go to stdout, and the command's output to stderr
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// Measures of programs that this machine cannot count, from FILE: a report of a run on a machine
    /// that can, or written by hand (docs/use/pausing.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,
    /// Show the progress line even if the command reads or writes the terminal itself
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) progress: bool,
    /// Print no progress line and no table at the end
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Record observations and plans to FILE, as Parquet (docs/use/recordings.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Replace the recording if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Manage the command in this process, even if a daemon of this user runs
    #[arg(long)]
    pub(crate) no_daemon: bool,
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD", add = values::command())]
    pub(crate) command: Vec<OsString>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RecordArgs {
    /// File of the recording, as Parquet
    #[arg(short, long, value_name = "FILE", default_value = "recording.parquet")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) run: RunArgs,
}

pub(crate) fn execute(args: &RunArgs) -> Result<ExitCode> {
    refuse_unknown_option(args)?;
    args.trial.check(args.manage.dry_run)?;
    if args.trial.trial && args.group.is_some() {
        return Err(bad_input(
            "--trial compares one run with itself; leave --group out",
        ));
    }
    let config = config::load(args.manage.config.as_deref()).map_err(|e| as_bad_input(&e))?;
    // A group's leader manages the commands of all members.
    let host = manage::discover_host(&args.manage, &config.run, args.group.is_some())?;
    let mut offers = host.offers();
    let recorded = match &args.profile {
        None => None,
        Some(path) => {
            // By its whole path, because members of a group run in other folders.
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let recorded = RecordedMeasures::read(&path)
                .map_err(|error| bad_input(format!("--profile: {error}")))?;
            recorded
                .check(&program_name(&command(args)?))
                .map_err(bad_input)?;
            recorded.offer(&mut offers);
            Some(recorded)
        }
    };
    let enforcement = manage::enforcement(&args.manage, &config.run, &host)?;
    let setup = PolicySetup::new(&args.manage, &config.run, &host.discovery.topology, &offers)?;
    let report_file = ReportFile::begin(args.report.as_deref())?;
    let page_file = ReportFile::begin(args.report_html.as_deref())?;
    let table = TableOutput::begin(args.numbers.out.as_deref())?;
    let recorder = recorder(args, &setup, &host, &offers)?;
    let report = run_command(args, &config, setup, host, recorded, enforcement, recorder)?;
    // The command has ended and its status stands, even if its report cannot be written.
    for reported in [
        report_file.map_or(Ok(()), |file| file.write_json(&report)),
        page_file.map_or(Ok(()), |file| {
            file.write(&report::html(&report, &command_line(args))?)
        }),
        table.write(|| report.table(args.manage.seed)),
        report::print(&report, args.format, args.quiet),
    ] {
        if let Err(error) = reported {
            warn(&error);
        }
    }
    Ok(ExitCode::from(u8::try_from(report.exit_code).unwrap_or(1)))
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

/// The command as one line.
fn command_line(args: &RunArgs) -> String {
    let words = args.command.iter().map(|word| word.to_string_lossy());
    words.collect::<Vec<_>>().join(" ")
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

/// The requested recording; refused before anything is started.
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
        policy: setup.selection.policy.clone(),
        interval_ms: 1e3 * setup.selection.interval.as_secs_f64(),
        topology: host.discovery.topology.clone(),
        machine: offers.machine().to_owned(),
        stack: offers.stack().to_vec(),
        offers: offers.clone(),
    };
    let recorder = RecordingWriter::create(path, &about, args.force).map_err(bad_input)?;
    Ok(Some(recorder))
}

/// Runs the command to its end: in a group if one is named or a daemon runs, else by itself.
fn run_command(
    args: &RunArgs,
    config: &ConsortConfig,
    setup: PolicySetup,
    host: Host,
    recorded: Option<RecordedMeasures>,
    (enactors, cookies): (EnactChoice, bool),
    recorder: Option<RecordingWriter>,
) -> Result<RunReport> {
    let mut command = command(args)?;
    if args.format != OutputFormat::Table {
        // stdout carries exactly one document; the command's own output goes where people look.
        let stderr = std::io::stderr().as_fd().try_clone_to_owned()?;
        command.stdout(stderr);
    }
    let group = args.group.clone().or_else(|| daemon_group(args));
    let group = group.map(|name| group_target(args, &setup, name, recorded.as_ref()));
    let selection = &setup.selection;
    // A group may yet settle another policy, and hotplug may make placing worthwhile.
    let only_watches = selection.is_watch_only() && args.group.is_none();
    let settings = LiveSettings {
        interval: selection.interval,
        watch: selection.watch(recorder.is_some()),
        dry_run: args.manage.dry_run,
        override_affinity: args.manage.override_affinity,
        enactors,
        cookies,
        pausing: PauseKind::ALL.to_vec(),
        recorded,
        enact: manage::enact_config(args.manage.dry_run || only_watches),
    };
    let session = ManageSession {
        args: &args.manage,
        trial: &args.trial,
        config: &config.run,
        line: match (args.quiet, args.progress) {
            (true, _) => ProgressVisibility::Never,
            (_, true) => ProgressVisibility::Requested,
            (false, false) => ProgressVisibility::Unshared,
        },
        stdout_taken: args.format != OutputFormat::Table,
        recorder: RefCell::new(recorder),
    };
    let machine = match group {
        None => GroupMachine::new(
            LiveMachine::launch(host, command, settings).map_err(launch_failure)?,
            None,
        ),
        Some(group) => match join_group(host, command, settings, group).map_err(launch_failure)? {
            JoinOutcome::Leads(machine) => *machine,
            JoinOutcome::Follows(follower) => return session.follow(*follower),
        },
    };
    session.manage(setup.rechoose_for_machine(&machine)?, machine)
}

/// The group of this user's daemon, if one runs and the arguments leave policy, quantum and report to
/// it; `consort status` shows what it manages.
fn daemon_group(args: &RunArgs) -> Option<GroupName> {
    let manage = &args.manage;
    let is_own = manage.policy.is_some()
        || manage.interval.is_some()
        || manage.emulate_asymmetry.is_some()
        || manage.enact.is_some()
        || manage.cookies
        || manage.dry_run
        || args.trial.trial
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
    let is_handed_over = !args.no_daemon && !is_own && has_daemon(&runtime_dirs());
    is_handed_over.then(GroupName::for_daemon)
}

/// Describes the group to join: demands of the command line must hold there; the rest is the
/// leader's.
fn group_target(
    args: &RunArgs,
    setup: &PolicySetup,
    name: GroupName,
    recorded: Option<&RecordedMeasures>,
) -> GroupTarget {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    GroupTarget {
        name,
        demands: Demands {
            // An automatic choice is the leader's, because it depends on all members.
            policy: args.manage.policy.clone().filter(|policy| !is_auto(policy)),
            interval_ms: args.manage.interval.map(millis),
            dry_run: args.manage.dry_run,
            profile: recorded.map(|recorded| recorded.origin().to_owned()),
        },
        policy: setup.selection.requested.clone(),
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
