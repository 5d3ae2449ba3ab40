//! `consort attach`: threads that run already, managed by a daemon, or here if there is none.

use super::daemon_requests::{
    DaemonTarget, TargetArgs, attachment, refusal_as_input, show_changes,
};
use super::manage::{self, ManageArgs, ManageSession, PolicySetup, TrialArgs};
use crate::failure::{as_bad_input, bad_input, warn};
use crate::options::ResultOut;
use crate::output::file::{ReportFile, ResultFiles};
use crate::output::{self, OutputFormat};
use crate::progress::ProgressVisibility;
use crate::timelines::LiveTimeline;
use crate::{config, report};
use anyhow::Result;
use clap::Args;
use consort_linux::cgroup::CgroupPattern;
use consort_linux::control::{AttachTargets, DaemonConnectionError, DaemonRequest, connect_daemon};
use consort_linux::live::{
    AttachError, AttachSpec, EndCondition, GroupAttachOutcome, GroupMachine, LiveMachine,
    LiveSettings,
};
use consort_linux::pause::PauseKind;
use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Clone, Debug, Args)]
#[command(
    mut_arg("out", |arg| arg.requires("foreground")),
    mut_arg("report_html", |arg| arg.requires("foreground"))
)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    #[command(flatten)]
    pub(crate) manage: ManageArgs,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
    #[command(flatten)]
    pub(crate) at: DaemonTarget,
    /// Manage them in this process until they end or you press Ctrl-C, even if a daemon runs
    #[arg(long)]
    pub(crate) foreground: bool,
    /// Write the report as JSON to FILE at the end; needs --foreground
    #[arg(long, value_name = "FILE", requires = "foreground")]
    pub(crate) report: Option<PathBuf>,
    /// Write a timeline for Perfetto (ui.perfetto.dev) to FILE at the end; needs --foreground
    #[arg(long, value_name = "FILE", requires = "foreground")]
    pub(crate) timeline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) files: ResultOut,
    /// Print no progress line and no table at the end
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

pub(crate) fn execute(args: &AttachArgs) -> Result<ExitCode> {
    args.trial.check(args.manage.dry_run)?;
    let wanted = attachment(&args.targets, args.manage.policy.as_deref())?;
    // A trial belongs to the process that prints its verdict.
    if args.foreground || args.trial.trial {
        return manage_here(args, &wanted);
    }
    match connect_daemon(args.at.socket.as_deref()) {
        Ok(mut daemon) => {
            let reported = daemon
                .send_request(&DaemonRequest::Attach(wanted))
                .map_err(refusal_as_input)?;
            show_changes(&args.at, "managed", &reported)
        }
        Err(DaemonConnectionError::NoDaemon { .. }) if args.at.socket.is_none() => {
            manage_here(args, &wanted)
        }
        Err(error) => Err(error.into()),
    }
}

/// Manages until nothing is left of what was attached, or until a signal ends it.
fn manage_here(args: &AttachArgs, wanted: &AttachTargets) -> Result<ExitCode> {
    let config = config::load(args.manage.config.as_deref()).map_err(|e| as_bad_input(&e))?;
    let host = manage::discover_host(&args.manage, &config.run, true)?;
    let offers = host.offers();
    let setup = PolicySetup::new(&args.manage, &config.run, &host.discovery.topology, &offers)?;
    let (enactors, cookies) = manage::enforcement(&args.manage, &config.run, &host)?;
    let selection = &setup.selection;
    let settings = LiveSettings {
        interval: selection.interval,
        watch: selection.watch(false),
        dry_run: args.manage.dry_run,
        override_affinity: args.manage.override_affinity,
        enactors,
        cookies,
        pausing: PauseKind::ALL.to_vec(),
        recorded: None,
        enact: manage::enact_config(args.manage.dry_run || selection.is_watch_only()),
    };
    let spec = AttachSpec {
        settings,
        until: EndCondition::Empty,
        leads: None,
    };
    let report_file = ReportFile::begin(args.report.as_deref())?;
    let timeline = LiveTimeline::begin(args.timeline.as_deref())?;
    let files = ResultFiles::begin(&args.files)?;
    let mut machine = GroupMachine::manage_host(host, spec)?;
    if let Err(error) = attach_targets(machine.live_mut(), wanted) {
        machine.finish();
        return Err(error);
    }
    let session = ManageSession {
        args: &args.manage,
        trial: &args.trial,
        config: &config.run,
        line: if args.quiet {
            ProgressVisibility::Never
        } else {
            ProgressVisibility::Requested
        },
        stdout_taken: args.at.format != OutputFormat::Table,
        recorder: RefCell::default(),
        timeline: RefCell::new(timeline),
    };
    let report = session.manage(setup.rechoose_for_machine(&machine)?, machine)?;
    for reported in [
        report_file.map_or(Ok(()), |file| file.write_json(&report)),
        report::write_files(files, &report, "attached programs", args.manage.seed),
        report::print(&report, args.at.format, args.quiet),
    ] {
        if let Err(error) = reported {
            warn(&error);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn attach_targets(live: &mut LiveMachine, wanted: &AttachTargets) -> Result<()> {
    for &pid in &wanted.pids {
        match live.attach(pid, None) {
            Ok(()) | Err(AttachError::Managed(_)) => {}
            Err(error) => return Err(bad_input(error)),
        }
    }
    for text in &wanted.cgroups {
        let pattern = text.parse::<CgroupPattern>().map_err(bad_input)?;
        let state = match live.attach_cgroup(pattern, None) {
            GroupAttachOutcome::Managed => continue,
            GroupAttachOutcome::Awaited => "matches nothing yet; processes that appear are managed",
            GroupAttachOutcome::Excluded => "is excluded, so nothing in it is managed",
        };
        let text = format!("control group {text} {state} (Ctrl-C ends)\n");
        output::print_text_to_stderr(&text)?;
    }
    Ok(())
}
