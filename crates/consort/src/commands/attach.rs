//! `consort attach`: threads that run already, managed by a daemon, or here where there is none.

use super::ask::{attachment, refused, show_done};
use super::manage::{self, Session, Setup};
use crate::cli::{AttachArgs, Format};
use crate::config::{self, RunConfig};
use crate::failure::{as_bad_input, bad_input, warn};
use crate::output;
use crate::progress::Line;
use crate::report::{self, COLUMNS, ReportFile};
use crate::table_file::TableFile;
use anyhow::Result;
use consort_linux::cgroup::CgroupPattern;
use consort_linux::control::{Attachment, CallError, Request, call};
use consort_linux::live::{AttachError, AttachedGroups, Live, ResideSpec, Until};
use std::cell::RefCell;
use std::process::ExitCode;

pub(crate) fn execute(args: &AttachArgs) -> Result<ExitCode> {
    let wanted = attachment(&args.targets, args.manage.policy.as_deref())?;
    if args.foreground {
        return here(args, &wanted);
    }
    match call(args.at.socket.as_deref()) {
        Ok(mut daemon) => {
            let told = daemon.ask(&Request::Attach(wanted)).map_err(refused)?;
            show_done(&args.at, "managed", &told)
        }
        Err(CallError::NoDaemon { .. }) if args.at.socket.is_none() => here(args, &wanted),
        Err(error) => Err(error.into()),
    }
}

/// Manages until nothing is left of what was attached, or until told to stop.
fn here(args: &AttachArgs, wanted: &Attachment) -> Result<ExitCode> {
    let config = config::load(args.manage.config.as_deref()).map_err(|e| as_bad_input(&e))?;
    let host = manage::look_for_others(&args.manage, &config.run)?;
    let offers = host.offers();
    let setup = Setup::new(&args.manage, &config.run, &host.discovery.topology, &offers)?;
    let enactors = manage::enactors(&args.manage, &config.run, &host)?;
    let spec = ResideSpec {
        interval: setup.interval,
        watch: setup.chosen().watch(false),
        dry_run: args.manage.dry_run,
        override_affinity: args.manage.override_affinity,
        enactors,
        cookies: manage::cookies(&args.manage, &config.run, &host, enactors)?,
        enact: manage::enact_config(args.manage.dry_run || setup.only_watches()),
        until: Until::Empty,
        leads: None,
    };
    let report_file = args.report.as_deref().map(ReportFile::create).transpose()?;
    let table = TableFile::begin(args.out.as_deref())?;
    let mut live = Live::reside(host, spec)?;
    if let Err(error) = take_in(&mut live, wanted) {
        live.finish();
        return Err(error);
    }
    let report = session(args, &config.run).manage(setup.with_what_is_left(&live)?, live)?;
    for told in [
        report_file.map_or(Ok(()), |file| file.write(&report)),
        table.write(|| report.table(args.manage.seed)),
        show(args, &report),
    ] {
        if let Err(error) = told {
            warn(&error);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn session<'a>(args: &'a AttachArgs, config: &'a RunConfig) -> Session<'a> {
    Session {
        args: &args.manage,
        config,
        line: if args.quiet { Line::Never } else { Line::Asked },
        stdout_taken: args.at.format != Format::Table,
        recorder: RefCell::default(),
    }
}

fn take_in(live: &mut Live, wanted: &Attachment) -> Result<()> {
    for &pid in &wanted.pids {
        match live.attach(pid, None) {
            Ok(()) | Err(AttachError::Managed(_)) => {}
            Err(error) => return Err(bad_input(error)),
        }
    }
    for text in &wanted.cgroups {
        let pattern = text.parse::<CgroupPattern>().map_err(bad_input)?;
        let state = match live.attach_cgroup(pattern, None) {
            AttachedGroups::Managed => continue,
            AttachedGroups::Awaited => "matches nothing yet; what appears is managed",
            AttachedGroups::Excluded => "is excluded, so nothing in it is managed",
        };
        let text = format!("control group {text} {state} (Ctrl-C ends)\n");
        output::people_on_stderr(&text)?;
    }
    Ok(())
}

fn show(args: &AttachArgs, report: &report::RunReport) -> Result<()> {
    let mut out = output::stdout();
    match args.at.format {
        Format::Json => output::json(&mut out, report),
        Format::Csv => output::csv(&mut out, COLUMNS, &report.threads),
        Format::Table if args.quiet => Ok(()),
        Format::Table => {
            let text = report::text(report, output::page::width_of_stderr());
            Ok(output::people_on_stderr(&text)?)
        }
    }
}
