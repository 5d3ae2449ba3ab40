//! `consort status`, `explain` and `detach`: what a daemon is asked.

use crate::cli::{DaemonTarget, DetachArgs, ExplainArgs, OutputFormat, StatusArgs, TargetArgs};
use crate::commands::daemon::{DaemonStatus, ThreadExplanation, ThreadLine};
use crate::config::pattern;
use crate::failure::bad_input;
use crate::output::{self, OutputColumn};
use crate::table_file;
use anyhow::{Context, Result};
use consort_core::escape_invisible;
use consort_linux::control::{
    AttachTargets, DaemonConnection, DaemonConnectionError, DaemonRequest, connect_daemon,
};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

/// Prints what a daemon manages.
pub(crate) fn show_status(args: &StatusArgs) -> Result<ExitCode> {
    let reported =
        connect_to_daemon(args.at.socket.as_deref())?.send_request(&DaemonRequest::Status)?;
    let mut out = output::stdout();
    let status = serde_json::from_value(reported.clone());
    let status: DaemonStatus = status.context("the daemon's answer")?;
    table_file::write_list(args.list.out.as_deref(), COLUMNS, &status.threads)?;
    if args.at.format == OutputFormat::Json {
        output::write_json(&mut out, &reported)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.at.format == OutputFormat::Table {
        output::print_text(&mut out, &head(&status))?;
    }
    output::print(&mut out, args.at.format, COLUMNS, &status.threads, &status)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints why a thread is where it is.
pub(crate) fn explain(args: &ExplainArgs) -> Result<ExitCode> {
    let reported = connect_to_daemon(args.at.socket.as_deref())?
        .send_request(&DaemonRequest::Explain { tid: args.tid });
    let reported = reported.map_err(refusal_as_input)?;
    let mut out = output::stdout();
    match args.at.format {
        OutputFormat::Json => output::write_json(&mut out, &reported)?,
        OutputFormat::Table | OutputFormat::Csv => {
            let why: ThreadExplanation =
                serde_json::from_value(reported).context("the daemon's answer")?;
            output::print_text(&mut out, &explanation(&why))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Puts threads back that a daemon manages.
pub(crate) fn detach(args: &DetachArgs) -> Result<ExitCode> {
    let request = DaemonRequest::Detach(attachment(&args.targets, None)?);
    let reported = connect_to_daemon(args.at.socket.as_deref())?
        .send_request(&request)
        .map_err(refusal_as_input)?;
    show_changes(&args.at, "let alone", &reported)
}

/// Connects to a running daemon.
pub(crate) fn connect_to_daemon(socket: Option<&Path>) -> Result<DaemonConnection> {
    Ok(connect_daemon(socket)?)
}

/// Marks a refusal as bad input: the daemon says what would be right.
pub(crate) fn refusal_as_input(error: DaemonConnectionError) -> anyhow::Error {
    match error {
        DaemonConnectionError::Refused(why) => bad_input(why),
        other => other.into(),
    }
}

/// Makes the request from the arguments, checked as far as that can be done here.
pub(crate) fn attachment(targets: &TargetArgs, policy: Option<&str>) -> Result<AttachTargets> {
    let of_cgroup = targets.cgroup.iter().map(|text| pattern(Some(text), None));
    let of_unit = targets.unit.iter().map(|name| pattern(None, Some(name)));
    let patterns = of_cgroup.chain(of_unit);
    let cgroups = patterns.map(|pattern| Ok(pattern.map_err(bad_input)?.as_str().to_owned()));
    Ok(AttachTargets {
        pids: targets.pids.clone(),
        cgroups: cgroups.collect::<Result<_>>()?,
        policy: policy.map(str::to_owned),
    })
}

/// Tells what a daemon has done.
pub(crate) fn show_changes(at: &DaemonTarget, what: &str, reported: &Value) -> Result<ExitCode> {
    let mut out = output::stdout();
    if at.format == OutputFormat::Json {
        output::write_json(&mut out, reported)?;
        return Ok(ExitCode::SUCCESS);
    }
    let texts = |key: &str| -> Vec<String> {
        let list = reported.get(key).and_then(Value::as_array);
        let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
        list.into_iter().flatten().map(text).collect()
    };
    let [awaited, excluded, also, remaining] =
        ["awaited", "excluded", "also", "remaining"].map(texts);
    let mut done = ["attached", "detached", "cgroups"].map(texts).concat();
    done.retain(|text| !awaited.contains(text) && !excluded.contains(text));
    let parts = [
        (what, done),
        (
            "nothing matches yet, managed as soon as something does",
            awaited,
        ),
        ("excluded, so not managed", excluded),
        ("left alone too, as parts of the same programs", also),
        ("still managed, without what was named", remaining),
    ];
    for (what, which) in parts.iter().filter(|(_, which)| !which.is_empty()) {
        output::print_text(
            &mut out,
            &format!("{what}: {}\n", escape_invisible(&which.join(", "))),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn head(status: &DaemonStatus) -> String {
    let mut text = String::new();
    // Writing to a text does not fail.
    let _ = writeln!(
        text,
        "daemon {}, version {}, for {:.0} s: policy {} ({}), tier {}, quantum {:.0} ms, {} plans, \
         {} moves, {} nudges, {:.2} % of one PU for itself",
        status.pid,
        status.version,
        status.uptime_s,
        status.policy,
        status.policy_reason,
        status.tier,
        status.quantum_ms,
        status.plans,
        status.moves,
        status.nudges,
        100.0 * status.own_cpu_share
    );
    for program in &status.programs {
        let policy = escape_invisible(program.policy.as_deref().unwrap_or("the daemon's policy"));
        let name = escape_invisible(&program.name);
        let _ = writeln!(
            text,
            "program {} ({name}): {policy}, {} threads",
            program.pid, program.threads
        );
    }
    for warning in &status.warnings {
        let _ = writeln!(text, "warning: {}", escape_invisible(warning));
    }
    text
}

const COLUMNS: &[OutputColumn<ThreadLine>] = &[
    output::number("thread", |t| t.tid.to_string()),
    output::text("name", |t| t.name.clone()),
    output::number("program", |t| t.program.to_string()),
    output::number("CPU %", |t| format!("{:.0}", 100.0 * t.cpu_share)),
    output::text("class", |t| t.class.clone()),
    output::number("PU", |t| {
        t.last_pu.map_or(String::new(), |pu| pu.to_string())
    }),
    output::text("may run on", |t| t.cpus.clone()),
    output::text("why", |t| t.chosen.clone()),
];

pub(crate) fn explanation(why: &ThreadExplanation) -> String {
    let mut text = String::new();
    let name = escape_invisible(&why.name);
    let _ = writeln!(
        text,
        "thread {} ({name}) of program {}",
        why.tid, why.program
    );
    let _ = writeln!(text, "policy: {}", escape_invisible(&why.policy));
    let _ = writeln!(text, "placed: {}", why.placement);
    for (label, reported) in [("considered", &why.considered), ("chosen", &why.chosen)] {
        if !reported.is_empty() {
            let _ = writeln!(text, "{label}: {}", escape_invisible(reported));
        }
    }
    for fact in &why.facts {
        let name = escape_invisible(&fact.name);
        let _ = writeln!(text, "  {name} = {:.4} {}", fact.value, fact.unit);
    }
    for note in &why.notes {
        let _ = writeln!(text, "plan: {}", escape_invisible(note));
    }
    text
}
