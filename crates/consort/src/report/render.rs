//! The report for people.

use super::{RunReport, ThreadRow};
use crate::output::{self, OutputColumn, extra_number, number};
use consort_core::{MemoryLimit, Throttle, escape_invisible};
use consort_data::List;
use consort_linux::enforce::{EnactorKind, WindowCounts};
use consort_linux::live::CookieCounts;
use std::collections::BTreeMap;
use std::fmt::Write;

fn percent(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

fn percent_or_dash(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), percent)
}

/// Names the limit of a thread that waits for memory; `-` for others.
fn limit(thread: &ThreadRow) -> String {
    let text = match thread.memory_limit {
        Some(MemoryLimit::Latency) => "latency",
        Some(MemoryLimit::Bandwidth) => "bandwidth",
        None => "-",
    };
    text.to_owned()
}

/// The interval of the stalled share in percent; `-` if there is none.
fn stall_interval(thread: &ThreadRow) -> String {
    let text = |[low, high]: [f64; 2]| format!("{}-{}", percent(low), percent(high));
    thread
        .memory_stall_ci95
        .map_or_else(|| "-".to_owned(), text)
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
    extra_number("95 %", stall_interval),
    extra_number("limit", limit),
    number("in place %", |t| percent_or_dash(t.adherence)),
    number("moves", |t| t.moves.to_string()),
    output::text("PUs", |t| t.cpus.clone()),
    output::text("why there", |t| t.reason.clone()),
];

/// Threads that the table shows; the JSON report has more.
const SHOWN: usize = 24;

/// The whole report as text, its table in so many characters.
pub(crate) fn text(report: &RunReport, width: Option<usize>) -> String {
    let mut out = String::new();
    write_head(&mut out, report);
    let shown = &report.threads[..report.threads.len().min(SHOWN)];
    if !shown.is_empty() {
        out.push_str(&List::new(COLUMNS, shown).to_text(width));
    }
    write_hidden(&mut out, report);
    write_foot(&mut out, report);
    out
}

// Writing to a String cannot fail, so the results of `writeln!` below are dropped.

pub(super) fn write_head(out: &mut String, report: &RunReport) {
    let mode = if report.dry_run {
        ", dry run: nothing was changed"
    } else {
        ""
    };
    let _ = writeln!(
        out,
        "\nconsort: policy {} ({}), tier {}{mode}",
        escape_invisible(&report.policy),
        escape_invisible(&report.policy_reason),
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

fn write_hidden(out: &mut String, report: &RunReport) {
    let unshown = report.threads.iter().skip(SHOWN);
    let cpu_s: f64 = unshown.map(|t| t.cpu_s).sum::<f64>() + report.others.cpu_s;
    let count = report.threads.len().saturating_sub(SHOWN) as u64 + report.others.count;
    write_hidden_count(out, count, cpu_s);
    out.push('\n');
}

/// Threads that are not shown one by one, with their CPU time, s.
pub(super) fn write_hidden_count(out: &mut String, count: u64, cpu_s: f64) {
    if count > 0 {
        let _ = writeln!(
            out,
            "and {count} more threads with {cpu_s:.2} s of CPU time"
        );
    }
}

/// Share of the time that a thread could run from which on waiting for a PU is starving.
const STARVED_FROM: f64 = 0.9;

/// Describes threads that hardly got a PU although they could run; `None` if there are none. Threads
/// that a limit held did not wait for a PU.
fn starved_sentence(report: &RunReport) -> Option<String> {
    let is_starved = |t: &&ThreadRow| {
        let wait_s = t.wait_s.unwrap_or(0.0);
        let waits = wait_s > STARVED_FROM * (wait_s + t.cpu_s) && wait_s > report.duration_s / 2.0;
        waits && t.throttled.is_none()
    };
    let count = report.threads.iter().filter(is_starved).count() as u64;
    (count > 0).then(|| {
        format!(
            "{} starved: they had a PU for less than a tenth of the time that they could run",
            threads_were(count)
        )
    })
}

/// One sentence for each control group whose limit held threads.
fn throttled_sentences(report: &RunReport) -> Vec<String> {
    let mut groups: BTreeMap<&str, (u64, &Throttle)> = BTreeMap::new();
    for throttle in report.threads.iter().filter_map(|t| t.throttled.as_ref()) {
        let (count, most) = groups.entry(&throttle.group).or_insert((0, throttle));
        *count += 1;
        if throttle.share > most.share {
            *most = throttle;
        }
    }
    let groups = groups.values();
    let sentence = |(count, throttle): &(u64, &Throttle)| {
        let throttle = throttle.to_string();
        format!("{} {}", threads_were(*count), escape_invisible(&throttle))
    };
    groups.map(sentence).collect()
}

/// A count of threads as the subject of a sentence.
fn threads_were(count: u64) -> String {
    let verb = if count == 1 { "was" } else { "were" };
    format!("{} {verb}", count_text(count, "thread"))
}

/// Writes the length of quanta, and the returns from the kernel where they were counted.
fn write_quanta(out: &mut String, report: &RunReport) {
    let sum = |of: fn(&ThreadRow) -> Option<u64>| -> Option<u64> {
        let counted = report.threads.iter().filter_map(of);
        counted.reduce(|sum, n| sum + n)
    };
    let futex = sum(|t| t.futex_returns).map(|n| format!("{n} from futex calls"));
    let others = sum(|t| t.blocking_returns).map(|n| format!("{n} from others that blocked"));
    let reported: Vec<String> = futex.into_iter().chain(others).collect();
    let returns = match reported.is_empty() {
        true => String::new(),
        false => format!("; returns from the kernel: {}", reported.join(", ")),
    };
    let asked_ms = report.quantum.asked_ms;
    let mean = report.quantum.mean_ms;
    let mean = mean.map_or_else(String::new, |ms| format!(", {ms:.2} ms on average"));
    let _ = writeln!(out, "quanta of {asked_ms} ms{mean}{returns}");
}

/// A count with its noun, in the plural but for one.
fn count_text(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Tells which enactor kept threads in their places, and how well.
fn adherence_sentence(enactor: EnactorKind, report: &RunReport) -> String {
    let nudges = match report.nudges {
        0 => String::new(),
        n => format!(", {}{}", count_text(n, "nudge"), windows(report.windows)),
    };
    let Some(adherence) = report.adherence else {
        return format!("enactor {enactor}{nudges}; no thread was given a place");
    };
    let pairs = report.pair_adherence.map_or_else(String::new, |share| {
        format!(
            ", pairs shared a core at least {} percent of theirs",
            percent(share)
        )
    });
    let not_held = match report.not_held {
        0 => String::new(),
        1 => "; one plan was not judged because threads did not stay in place".to_owned(),
        n => format!("; {n} plans were not judged because threads did not stay in place"),
    };
    format!(
        "enactor {enactor}{nudges}: threads spent {} percent of their running time in place{pairs}{not_held}",
        percent(adherence)
    )
}

/// The share of time for which nudges could be seen, and the longest such time.
fn windows(counts: Option<WindowCounts>) -> String {
    let Some(counts) = counts else {
        return String::new();
    };
    let share = counts.share.map_or_else(String::new, |share| {
        format!(
            "masks narrow for {:.3} percent of the time, ",
            100.0 * share
        )
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

/// Tells how many cores had core-scheduling cookies, and how often these changed.
fn cookies(counts: CookieCounts) -> String {
    format!(
        "core-scheduling cookies: on up to {} at a time, {}",
        count_text(counts.cores as u64, "core"),
        count_text(counts.writes, "change")
    )
}

/// The overhead as a share; empty if nothing that was managed ran.
fn share_of_managed(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| {
        format!(": {:.2} percent of the managed threads'", 100.0 * share)
    })
}

pub(super) fn write_foot(out: &mut String, report: &RunReport) {
    if report.asymmetry.is_some() {
        write_quanta(out, report);
    }
    let undone = match report.undone {
        0 => String::new(),
        n => format!(", {n} undone because progress fell"),
    };
    let pauses = match report.pauses {
        0 => String::new(),
        n => format!(", {}", count_text(n, "pause")),
    };
    let _ = writeln!(
        out,
        "{} and {}{pauses} in {:.2} s{undone}; every mask restored: {}",
        count_text(report.plans, "plan"),
        count_text(report.moves, "move"),
        report.duration_s,
        if report.restored { "yes" } else { "NO" }
    );
    if let Some(enactor) = report.enactor {
        let _ = writeln!(out, "{}", adherence_sentence(enactor, report));
    }
    if let Some(counts) = report.cookies {
        let _ = writeln!(out, "{}", cookies(counts));
    }
    let at_switches = match report.overhead.events_s {
        events_s if events_s > 0.0 => format!(" and {events_s:.3} s at switches and starts"),
        _ => String::new(),
    };
    let _ = writeln!(
        out,
        "overhead: {:.3} s of CPU, and {:.3} s (estimated) for taking samples{at_switches}{}; peak memory {} KiB",
        report.overhead.cpu_s,
        report.overhead.sampling_s_estimated,
        share_of_managed(report.overhead.share_of_managed),
        report.overhead.peak_rss_kib
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

#[cfg(test)]
mod tests {
    use super::count_text;

    #[test]
    fn one_is_singular_and_none_is_plural() {
        let reported = [0, 1, 2].map(|count| count_text(count, "plan"));
        assert_eq!(reported, ["0 plans", "1 plan", "2 plans"]);
    }
}
