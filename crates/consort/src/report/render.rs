//! The report for people: as text, and as a page for a browser.

use super::{CoRunnerShare, CpuShare, GroupReport, RunReport, ThreadRow};
use crate::output::file::ResultFiles;
use crate::output::{
    self, OutputColumn, OutputFormat, count, extra_number, extra_text, number, or_dash, percent,
};
use anyhow::{Context, Result};
use consort_core::{MemoryLimit, Mix, Throttle, escape_invisible};
use consort_data::{Axis, Bar, BarChart, BarSeries, Figure, List, Plot, figures_page};
use consort_linux::enforce::{EnactorKind, WindowCounts};
use std::collections::BTreeMap;
use std::fmt::Write;

fn percent_or_dash(share: Option<f64>) -> String {
    or_dash(share, |share| percent(share, 0))
}

/// The columns of the thread table and of its CSV form.
pub(crate) const COLUMNS: &[OutputColumn<ThreadRow>] = &[
    number("tid", |t| t.tid.to_string()),
    output::text("name", |t| t.name.clone()),
    number("CPU s", |t| format!("{:.2}", t.cpu_s)),
    output::text("class", |t| t.class.to_string()),
    number("fp %", |t| percent_or_dash(t.mix.map(|m| m.fp))),
    extra_number("vec %", |t| percent_or_dash(t.mix.map(|m| m.vector))),
    number("int %", |t| percent_or_dash(t.mix.map(|m| m.int))),
    extra_number("load %", |t| percent_or_dash(t.mix.map(|m| m.load))),
    extra_number("store %", |t| percent_or_dash(t.mix.map(|m| m.store))),
    extra_number("branch %", |t| percent_or_dash(t.mix.map(|m| m.branch))),
    number("stalled %", |t| percent_or_dash(t.memory_stall)),
    extra_number("95 %", |t| {
        or_dash(t.memory_stall_ci95, |[low, high]| {
            format!("{}-{}", percent(low, 0), percent(high, 0))
        })
    }),
    extra_number("limit", |t| {
        let limit = t.memory_limit.map(|limit| match limit {
            MemoryLimit::Latency => "latency",
            MemoryLimit::Bandwidth => "bandwidth",
        });
        limit.unwrap_or("-").to_owned()
    }),
    number("in place %", |t| percent_or_dash(t.adherence)),
    number("moves", |t| t.moves.to_string()),
    output::text("ran on", |t| ran_on(&t.ran_on)),
    extra_text("placed on", |t| t.cpus.clone()),
    extra_text("next to", |t| next_to(&t.co_runners)),
    output::text("why there", |t| t.reason.clone()),
];

/// CPUs by share of running time: the two with most, and how many others there are.
fn ran_on(shares: &[CpuShare]) -> String {
    let shown = shares.iter().take(2);
    let mut parts: Vec<String> = match shares {
        [only] => vec![only.cpu.to_string()],
        _ => shown
            .map(|s| format!("{} {} %", s.cpu, percent(s.share, 0)))
            .collect(),
    };
    if shares.len() > 2 {
        parts.push(format!("{} more", shares.len() - 2));
    }
    parts.join(", ")
}

/// Co-runners on the core by share of running time, the two with most.
fn next_to(shares: &[CoRunnerShare]) -> String {
    let shown = shares.iter().take(2);
    let parts: Vec<String> = shown
        .map(|s| format!("{} {} %", s.name, percent(s.share, 0)))
        .collect();
    parts.join(", ")
}

/// Threads that the table shows; the JSON report has more.
const SHOWN: usize = 24;

/// Prints the report: JSON and CSV on stdout, the text on stderr, unless `quiet`.
pub(crate) fn print(report: &RunReport, format: OutputFormat, quiet: bool) -> Result<()> {
    let printed = match format {
        OutputFormat::Table if quiet => Ok(()),
        OutputFormat::Table => {
            let text = text(report, output::page::stderr_width());
            output::print_text_to_stderr(&text)
        }
        _ => output::print(format, COLUMNS, &report.threads, report, String::new),
    };
    printed.context("cannot write the report")
}

/// The whole report as text, its table in lines of at most `width` characters.
pub(crate) fn text(report: &RunReport, width: Option<usize>) -> String {
    let mut out = String::new();
    write_head(&mut out, report);
    let shown = &report.threads[..report.threads.len().min(SHOWN)];
    if !shown.is_empty() {
        out.push_str(&List::new(COLUMNS, shown).to_text(width));
    }
    let unshown = &report.threads[shown.len()..];
    let cpu_s: f64 = unshown.iter().map(|t| t.cpu_s).sum::<f64>() + report.others.cpu_s;
    write_hidden_count(&mut out, unshown.len() as u64 + report.others.count, cpu_s);
    out.push('\n');
    write_foot(&mut out, report);
    out
}

// Writing to a String cannot fail, so the results of `writeln!` below are dropped.

fn write_head(out: &mut String, report: &RunReport) {
    let mode = if report.dry_run {
        ", dry run: nothing was changed"
    } else {
        ""
    };
    // Where no gain is to be expected, the verdict is the reason.
    let reason = match &report.policy_reason {
        reason if report.verdict.text.contains(reason) => String::new(),
        reason => format!(" ({})", escape_invisible(reason)),
    };
    let _ = writeln!(
        out,
        "\nconsort: {}\npolicy {}{reason}, tier {}{mode}",
        escape_invisible(&report.verdict.text),
        escape_invisible(&report.policy),
        report.tier
    );
    if let Some(asymmetry) = &report.asymmetry {
        let _ = writeln!(out, "{}", asymmetry.sentence());
    }
    if let Some(group) = &report.group {
        let _ = writeln!(out, "{}", group.sentence());
    }
    let estimated = report.threads.iter().any(|t| t.stack_source == "estimated");
    if estimated {
        let _ = writeln!(
            out,
            "shares are estimated from {} sampled instruction addresses ({} decoded, {} lost)",
            report.sampling.samples, report.sampling.decoded, report.sampling.lost
        );
    }
    out.push('\n');
}

/// Threads that are not shown one by one, with their CPU time, s.
fn write_hidden_count(out: &mut String, n: u64, cpu_s: f64) {
    if n > 0 {
        let threads = count(n as usize, "more thread");
        let _ = writeln!(out, "and {threads} with {cpu_s:.2} s of CPU time");
    }
}

/// Share of the time that a thread could run from which on waiting for a CPU is starving.
const STARVED_FROM: f64 = 0.9;

/// Describes threads that hardly got a CPU although they could run; `None` if there are none. Threads
/// that a limit held did not wait for a CPU.
fn starved_sentence(report: &RunReport) -> Option<String> {
    let is_starved = |t: &&ThreadRow| {
        let wait_s = t.wait_s.unwrap_or(0.0);
        let waits = wait_s > STARVED_FROM * (wait_s + t.cpu_s) && wait_s > report.duration_s / 2.0;
        waits && t.throttled.is_none()
    };
    let n = report.threads.iter().filter(is_starved).count();
    (n > 0).then(|| {
        format!(
            "{} starved: on a CPU for less than 10 % of the runnable time",
            threads_were(n)
        )
    })
}

/// One sentence for each control group whose limit held threads.
fn throttled_sentences(report: &RunReport) -> Vec<String> {
    let mut groups: BTreeMap<&str, (usize, &Throttle)> = BTreeMap::new();
    for throttle in report.threads.iter().filter_map(|t| t.throttled.as_ref()) {
        let (n, most) = groups.entry(&throttle.group).or_insert((0, throttle));
        *n += 1;
        if throttle.share > most.share {
            *most = throttle;
        }
    }
    let sentence = |(n, throttle): &(usize, &Throttle)| {
        let throttle = throttle.to_string();
        format!("{} {}", threads_were(*n), escape_invisible(&throttle))
    };
    groups.values().map(sentence).collect()
}

/// A count of threads as the subject of a sentence.
fn threads_were(n: usize) -> String {
    let verb = if n == 1 { "was" } else { "were" };
    format!("{} {verb}", count(n, "thread"))
}

/// The enactor that kept threads in their places, and the share of time that they stayed there.
fn adherence_sentence(enactor: EnactorKind, report: &RunReport) -> String {
    let nudges = match report.nudges {
        0 => String::new(),
        n => format!(
            ", {}{}",
            count(n as usize, "nudge"),
            report.windows.map_or_else(String::new, nudge_windows)
        ),
    };
    let Some(adherence) = report.adherence else {
        return format!("enactor {enactor}{nudges}; no thread was given a place");
    };
    let pairs = report.pair_adherence.map_or_else(String::new, |share| {
        let share = percent(share, 0);
        format!(", pairs shared a core at least {share} % of theirs")
    });
    let not_held = match report.not_held {
        0 => String::new(),
        n => format!(
            "; {} not judged, because threads did not stay where they were placed",
            count(n as usize, "plan")
        ),
    };
    format!(
        "enactor {enactor}{nudges}: threads ran on their assigned CPUs {} % of the time{pairs}{not_held}",
        percent(adherence, 0)
    )
}

/// The share of time for which masks are narrow because of nudges, and the longest such time.
fn nudge_windows(counts: WindowCounts) -> String {
    let share = counts.share.map_or_else(String::new, |share| {
        let share = percent(share, 3);
        format!("masks narrow for {share} % of the time, ")
    });
    let put_off = match counts.put_off {
        0 => String::new(),
        n => format!(", {n} put off"),
    };
    format!(
        " ({share}at most {:.0} us at once{put_off})",
        counts.longest_us
    )
}

/// Writes the length of quanta, and the returns from the kernel if they were counted.
fn write_quanta(out: &mut String, report: &RunReport) {
    let sum = |counted: fn(&ThreadRow) -> Option<u64>| -> Option<u64> {
        let counts = report.threads.iter().filter_map(counted);
        counts.reduce(|sum, n| sum + n)
    };
    let futex = sum(|t| t.futex_returns).map(|n| format!("{n} from futex calls"));
    let others = sum(|t| t.blocking_returns).map(|n| format!("{n} from others that blocked"));
    let returns: Vec<String> = futex.into_iter().chain(others).collect();
    let returns = match returns.is_empty() {
        true => String::new(),
        false => format!("; returns from the kernel: {}", returns.join(", ")),
    };
    let mean = report.quantum.mean_ms;
    let mean = mean.map_or_else(String::new, |ms| format!(", {ms:.2} ms on average"));
    let _ = writeln!(
        out,
        "quanta of {} ms{mean}{returns}",
        report.quantum.asked_ms
    );
}

/// CPU time of the managed threads, s, from which on overhead is shown as a share of it. Below, the
/// start of Consort exceeds it many times over and the share describes nothing but that start.
const SHARE_FROM_S: f64 = 1.0;

fn write_foot(out: &mut String, report: &RunReport) {
    if report.asymmetry.is_some() {
        write_quanta(out, report);
    }
    let undone = match report.undone {
        0 => String::new(),
        n => format!(", {n} undone because progress fell"),
    };
    let pauses = match report.pauses {
        0 => String::new(),
        n => format!(", {}", count(n as usize, "pause")),
    };
    let by = match report
        .group
        .as_ref()
        .is_some_and(GroupReport::is_daemon_group)
    {
        true => " by the daemon for all that it manages",
        false => "",
    };
    let _ = writeln!(
        out,
        "{} and {}{pauses}{by} in {:.2} s{undone}; {}",
        count(report.plans as usize, "plan"),
        count(report.moves as usize, "move"),
        report.duration_s,
        if report.restored {
            "all affinities restored"
        } else {
            "NOT all affinities restored"
        }
    );
    if let Some(enactor) = report.enactor {
        let _ = writeln!(out, "{}", adherence_sentence(enactor, report));
    }
    if let Some(cookies) = report.cookies {
        let _ = writeln!(
            out,
            "core-scheduling cookies: on up to {} at a time, {}",
            count(cookies.cores, "core"),
            count(cookies.writes as usize, "change")
        );
    }
    let at_switches = match report.overhead.events_s {
        events_s if events_s > 0.0 => format!(" and {events_s:.3} s at switches and starts"),
        _ => String::new(),
    };
    let share = match report.overhead.share_of_managed {
        None => String::new(),
        Some(share) if report.cpu_s >= SHARE_FROM_S => {
            format!(": {} % of the managed threads'", percent(share, 2))
        }
        Some(_) => format!(
            "; the managed threads used too little CPU time ({:.0} ms) to express it as a share",
            1e3 * report.cpu_s
        ),
    };
    let _ = writeln!(
        out,
        "overhead: {:.3} s of CPU, and {:.3} s (estimated) for taking samples{at_switches}{share}; peak memory {} KiB",
        report.overhead.cpu_s, report.overhead.sampling_s_estimated, report.overhead.peak_rss_kib
    );
    for throttled in throttled_sentences(report) {
        let _ = writeln!(out, "{throttled}");
    }
    if let Some(starved) = starved_sentence(report) {
        let _ = writeln!(out, "{starved}");
    }
    for warning in &report.warnings {
        let _ = writeln!(out, "warning: {}", escape_invisible(warning));
    }
}

/// Threads in the figures of the page: those with most CPU time.
const DRAWN: usize = 8;

/// Writes the files that `--out` names.
pub(crate) fn write_files(
    files: ResultFiles,
    report: &RunReport,
    command: &str,
    seed: Option<u64>,
) -> Result<()> {
    if let Some(page) = files.page {
        page.write(&html(report, command)?)?;
    }
    if let Some(document) = files.document {
        document.write_json(report)?;
    }
    files.table.write(|| report.table(seed))
}

/// The page of a run of this command.
fn html(report: &RunReport, command: &str) -> Result<String> {
    let threads = List::new(COLUMNS, &report.threads);
    let threads = threads.to_report_table("threads", "Threads, by CPU time")?;
    let mut text = String::new();
    write_head(&mut text, report);
    write_hidden_count(&mut text, report.others.count, report.others.cpu_s);
    write_foot(&mut text, report);
    let facts = text.lines().filter(|line| !line.trim().is_empty());
    let facts = facts.map(|line| line.strip_prefix("consort: ").unwrap_or(line).to_owned());
    let facts: Vec<String> = facts.collect();
    let title = format!("Run of {command}");
    Ok(figures_page(&title, &facts, &[threads], &figures(report)?)?)
}

fn figures(report: &RunReport) -> Result<Vec<Figure>> {
    let mut figures: Vec<Figure> = report.history.figure()?.into_iter().collect();
    let drawn = &report.threads[..report.threads.len().min(DRAWN)];
    if drawn.is_empty() {
        return Ok(figures);
    }
    let axis = Axis::linear("CPU time", Some("s"));
    let cpu = [series(drawn, "CPU time", |t| Some(t.cpu_s))];
    figures.push(bars(drawn, ("cpu", "CPU time"), axis, cpu.into())?);
    if drawn.iter().any(|thread| thread.mix.is_some()) {
        type ShareOf = fn(&Mix) -> f64;
        let classes: [(&str, ShareOf); 6] = [
            ("fp", |m| m.fp),
            ("vector", |m| m.vector),
            ("int", |m| m.int),
            ("load", |m| m.load),
            ("store", |m| m.store),
            ("branch", |m| m.branch),
        ];
        let mut mix = Vec::new();
        for (name, share) in classes {
            mix.push(series(drawn, name, |t| t.mix.as_ref().map(share)));
        }
        mix.push(series(drawn, "stalled behind loads", |t| t.memory_stall));
        let axis = Axis::linear("share of CPU time, estimated", None);
        let title = ("mix", "What threads executed");
        figures.push(bars(drawn, title, axis, mix)?);
    }
    Ok(figures)
}

fn series(drawn: &[ThreadRow], name: &str, value: impl Fn(&ThreadRow) -> Option<f64>) -> BarSeries {
    let bar = |value| Bar { value, ci95: None };
    BarSeries {
        name: name.to_owned(),
        bars: drawn.iter().map(|t| value(t).map(bar)).collect(),
    }
}

fn bars(
    drawn: &[ThreadRow],
    (key, title): (&str, &str),
    value: Axis,
    series: Vec<BarSeries>,
) -> Result<Figure> {
    let name = |thread: &ThreadRow| format!("{} {}", thread.name, thread.tid);
    let plot = Plot::Bars(BarChart {
        category: "thread".to_owned(),
        value,
        baseline: 0.0,
        groups: drawn.iter().map(name).collect(),
        series,
    });
    Ok(Figure::new(key, title, "", 1, plot)?)
}
