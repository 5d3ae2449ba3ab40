//! `consort attach`: threads that run already, managed by a daemon, or here where there is none.

use super::daemon_requests::{attachment, refusal_as_input, show_changes};
use super::manage::{self, ManageSession, PolicySetup};
use crate::cli::{AttachArgs, OutputFormat};
use crate::config::{self, RunConfig};
use crate::failure::{as_bad_input, bad_input, warn};
use crate::output;
use crate::progress::ProgressVisibility;
use crate::report::{self, COLUMNS, ReportFile};
use crate::table_file::TableOutput;
use anyhow::Result;
use consort_linux::cgroup::CgroupPattern;
use consort_linux::control::{AttachTargets, DaemonConnectionError, DaemonRequest, connect_daemon};
use consort_linux::live::{
    AttachError, AttachSpec, EndCondition, GroupAttachOutcome, GroupMachine, LiveMachine,
    LiveSettings,
};
use consort_linux::pause::PauseKind;
use std::cell::RefCell;
use std::process::ExitCode;

pub(crate) fn execute(args: &AttachArgs) -> Result<ExitCode> {
    let wanted = attachment(&args.targets, args.manage.policy.as_deref())?;
    if args.foreground {
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

/// Manages until nothing is left of what was attached, or until told to stop.
fn manage_here(args: &AttachArgs, wanted: &AttachTargets) -> Result<ExitCode> {
    let config = config::load(args.manage.config.as_deref()).map_err(|e| as_bad_input(&e))?;
    let host = manage::discover_host_for_others(&args.manage, &config.run)?;
    let offers = host.offers();
    let setup = PolicySetup::new(&args.manage, &config.run, &host.discovery.topology, &offers)?;
    let enactors = manage::enactors(&args.manage, &config.run, &host)?;
    let settings = LiveSettings {
        interval: setup.interval,
        watch: setup.selection().watch(false),
        dry_run: args.manage.dry_run,
        override_affinity: args.manage.override_affinity,
        enactors,
        cookies: manage::uses_cookies(&args.manage, &config.run, &host, enactors)?,
        pausing: PauseKind::ALL.to_vec(),
        recorded: None,
        enact: manage::enact_config(args.manage.dry_run || setup.is_watch_only()),
    };
    let spec = AttachSpec {
        settings,
        until: EndCondition::Empty,
        leads: None,
    };
    let report_file = args.report.as_deref().map(ReportFile::create).transpose()?;
    let table = TableOutput::begin(args.out.as_deref())?;
    let mut machine = GroupMachine::manage_host(host, spec)?;
    if let Err(error) = attach_targets(machine.live_mut(), wanted) {
        machine.finish();
        return Err(error);
    }
    let report =
        session(args, &config.run).manage(setup.rechoose_for_machine(&machine)?, machine)?;
    for reported in [
        report_file.map_or(Ok(()), |file| file.write(&report)),
        table.write(|| report.table(args.manage.seed)),
        show(args, &report),
    ] {
        if let Err(error) = reported {
            warn(&error);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn session<'a>(args: &'a AttachArgs, config: &'a RunConfig) -> ManageSession<'a> {
    ManageSession {
        args: &args.manage,
        config,
        line: if args.quiet {
            ProgressVisibility::Never
        } else {
            ProgressVisibility::Requested
        },
        stdout_taken: args.at.format != OutputFormat::Table,
        recorder: RefCell::default(),
    }
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
            GroupAttachOutcome::Awaited => "matches nothing yet; what appears is managed",
            GroupAttachOutcome::Excluded => "is excluded, so nothing in it is managed",
        };
        let text = format!("control group {text} {state} (Ctrl-C ends)\n");
        output::print_text_to_stderr(&text)?;
    }
    Ok(())
}

fn show(args: &AttachArgs, report: &report::RunReport) -> Result<()> {
    let mut out = output::stdout();
    match args.at.format {
        OutputFormat::Json => output::write_json(&mut out, report),
        OutputFormat::Csv => output::write_csv(&mut out, COLUMNS, &report.threads),
        OutputFormat::Table if args.quiet => Ok(()),
        OutputFormat::Table => {
            let text = report::text(report, output::page::stderr_width());
            Ok(output::print_text_to_stderr(&text)?)
        }
    }
}
