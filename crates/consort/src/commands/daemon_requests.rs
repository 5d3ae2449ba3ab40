//! `consort status`, `explain` and `detach`: requests to a daemon.

use crate::commands::daemon::{DaemonStatus, ThreadExplanation, ThreadLine};
use crate::config::pattern;
use crate::failure::bad_input;
use crate::options::ListOut;
use crate::output::file::write_list;
use crate::output::{self, OutputColumn, OutputFormat, count};
use anyhow::{Context, Result};
use clap::Args;
use consort_core::escape_invisible;
use consort_core::policy::published_name;
use consort_core::trial::EffectEstimate;
use consort_data::Cell;
use consort_linux::control::{
    AttachTargets, DaemonConnection, DaemonConnectionError, DaemonRequest, connect_daemon,
};
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Address of a daemon, and the format of its answers.
#[derive(Clone, Debug, Args)]
pub(crate) struct DaemonTarget {
    /// Socket of the daemon, instead of this user's or the host's
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Output format of the answer
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Processes, units or control groups to manage, or to manage no longer.
#[derive(Clone, Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct TargetArgs {
    /// Processes, each with its present and future descendants
    #[arg(value_name = "PID")]
    pub(crate) pids: Vec<u32>,
    /// Control groups, as a path from the top of the hierarchy or a pattern: user.slice/**,
    /// system.slice/docker-*.scope
    #[arg(long, value_name = "PATTERN")]
    pub(crate) cgroup: Vec<String>,
    /// Systemd units, wherever their control groups are
    #[arg(long, value_name = "NAME")]
    pub(crate) unit: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DetachArgs {
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    #[command(flatten)]
    pub(crate) at: DaemonTarget,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) at: DaemonTarget,
    #[command(flatten)]
    pub(crate) list: ListOut,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Kernel thread id, as `consort status` lists them, or a process, for all its busy threads
    #[arg(value_name = "THREAD|PID")]
    pub(crate) tid: u32,
    #[command(flatten)]
    pub(crate) at: DaemonTarget,
}

/// Prints what a daemon manages.
pub(crate) fn show_status(args: &StatusArgs) -> Result<ExitCode> {
    let reported =
        connect_to_daemon(args.at.socket.as_deref())?.send_request(&DaemonRequest::Status)?;
    let status = serde_json::from_value(reported.clone());
    let status: DaemonStatus = status.context("the daemon's answer")?;
    write_list(args.list.out.as_deref(), COLUMNS, &status.threads)?;
    output::print(args.at.format, COLUMNS, &status.threads, &reported, || {
        head(&status) + &output::table(COLUMNS, &status.threads)
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<ExitCode> {
    let reported = connect_to_daemon(args.at.socket.as_deref())?
        .send_request(&DaemonRequest::Explain { tid: args.tid })
        .map_err(refusal_as_input)?;
    match args.at.format {
        OutputFormat::Json => output::print_json(&reported)?,
        OutputFormat::Table | OutputFormat::Csv => {
            let why: ThreadExplanation =
                serde_json::from_value(reported).context("the daemon's answer")?;
            output::print_text(&explanation(&why))?;
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
    show_changes(&args.at, "no longer managed", &reported)
}

pub(crate) fn connect_to_daemon(socket: Option<&Path>) -> Result<DaemonConnection> {
    Ok(connect_daemon(socket)?)
}

/// Marks a refusal as bad input, because its text names what would be accepted.
pub(crate) fn refusal_as_input(error: DaemonConnectionError) -> anyhow::Error {
    match error {
        DaemonConnectionError::Refused(why) => bad_input(why),
        other => other.into(),
    }
}

/// Makes the request from the arguments, whose patterns are checked here.
pub(crate) fn attachment(targets: &TargetArgs, policy: Option<&str>) -> Result<AttachTargets> {
    let of_cgroup = targets.cgroup.iter().map(|text| pattern(Some(text), None));
    let of_unit = targets.unit.iter().map(|name| pattern(None, Some(name)));
    let patterns = of_cgroup.chain(of_unit);
    let cgroups = patterns.map(|pattern| Ok(pattern.map_err(bad_input)?.as_str().to_owned()));
    Ok(AttachTargets {
        pids: targets.pids.clone(),
        cgroups: cgroups.collect::<Result<_>>()?,
        policy: policy.map(|text| published_name(text).into_owned()),
    })
}

/// Prints the changes that a daemon has made.
pub(crate) fn show_changes(at: &DaemonTarget, what: &str, reported: &Value) -> Result<ExitCode> {
    if at.format == OutputFormat::Json {
        output::print_json(reported)?;
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
            "nothing matches yet; managed as soon as something does",
            awaited,
        ),
        ("excluded, so not managed", excluded),
        (
            "no longer managed either, as parts of the same programs",
            also,
        ),
        ("still managed, without the named targets", remaining),
    ];
    for (what, which) in parts.iter().filter(|(_, which)| !which.is_empty()) {
        let which = escape_invisible(&which.join(", ")).into_owned();
        output::print_text(&format!("{what}: {which}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn head(status: &DaemonStatus) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "{}\ndaemon {}, version {}, for {:.0} s: policy {} ({}), tier {}, quantum {:.0} ms, {}, {}, {}, \
         {}{:.2} % of one CPU for itself",
        escape_invisible(&status.verdict.text),
        status.pid,
        status.version,
        status.uptime_s,
        status.policy,
        status.policy_reason,
        status.tier,
        status.quantum_ms,
        count(status.plans as usize, "plan"),
        count(status.moves as usize, "move"),
        count(status.nudges as usize, "nudge"),
        status.adherence.map_or_else(String::new, |share| {
            format!(
                "threads {:.0} % of their time where they are placed, ",
                100.0 * share
            )
        }),
        100.0 * status.own_cpu_share
    );
    for program in &status.programs {
        let policy = escape_invisible(program.policy.as_deref().unwrap_or("the daemon's policy"));
        let name = escape_invisible(&program.name);
        let _ = writeln!(
            text,
            "program {} ({name}): {policy}, {}{}",
            program.pid,
            count(program.threads, "thread"),
            program.effect.map_or_else(String::new, effect_text)
        );
    }
    for warning in &status.warnings {
        let _ = writeln!(text, "warning: {}", escape_invisible(warning));
    }
    text
}

fn effect_text(effect: EffectEstimate) -> String {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    format!(
        ", effect {:+.1} % ({:+.1} to {:+.1})",
        percent(effect.ratio),
        percent(effect.low),
        percent(effect.high)
    )
}

const COLUMNS: &[OutputColumn<ThreadLine>] = &[
    output::number("thread", |t| t.tid.to_string()),
    output::text("name", |t| t.name.clone()),
    output::number("program", |t| t.program.to_string()),
    output::number("CPU %", |t| format!("{:.0}", 100.0 * t.cpu_share)),
    output::text("class", |t| t.class.clone()),
    output::number("last CPU", |t| {
        t.last_pu.map_or(String::new(), |pu| pu.to_string())
    }),
    output::text("placed on", |t| t.cpus.clone()),
    output::text("why", |t| t.chosen.clone()),
];

/// The places that were compared, one per line, or that none were.
fn comparison(why: &ThreadExplanation) -> String {
    let Some(first) = why.alternatives.first() else {
        return "compared: no costs are recorded for this thread\n".to_owned();
    };
    let mut text = format!("compared by {}:\n", escape_invisible(&first.measure));
    let mut measure = &first.measure;
    for alternative in &why.alternatives {
        if alternative.measure != *measure {
            measure = &alternative.measure;
            let _ = writeln!(text, "compared by {}:", escape_invisible(measure));
        }
        let chosen = if alternative.is_chosen {
            " (chosen)"
        } else {
            ""
        };
        let place = escape_invisible(&alternative.place);
        let digits = if alternative.cost.fract() == 0.0 {
            0
        } else {
            3
        };
        let _ = writeln!(text, "  {place}: {:.digits$}{chosen}", alternative.cost);
    }
    text
}

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
    text.push_str(&comparison(why));
    for fact in &why.facts {
        let name = escape_invisible(&fact.name);
        let unit = match fact.unit.as_ref() {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        let _ = writeln!(text, "  {name} = {}{unit}", Cell::from(fact.value).text());
    }
    for note in &why.notes {
        let _ = writeln!(text, "plan: {}", escape_invisible(note));
    }
    for other in &why.others {
        let _ = write!(text, "\n{}", explanation(other));
    }
    text
}
