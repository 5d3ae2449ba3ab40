//! The self-test of an event file: every event over loops of known counts, and of the software
//! events against activity of the test itself.
//!
//! Each hardware event is counted, in a group with cycles and instructions, over two numbers of
//! iterations; the difference drops what is executed around the loop. Tolerances: instructions and
//! branches 0.2 percent (interrupts add some), floating-point counts 1 percent. Events without an
//! architectural count (operations, slots, causes of stalls) are opened and read, and only a refusal
//! is an error.

use super::core_pmus;
use super::plan::{Pmu, event_spec};
use crate::events::{EventDefinition, EventFile, EventUnit, PmuEvents};
use crate::perf::{CounterGroup, PerfError, PerfEventSpec, PerfTarget, page_bytes};
use nix::time::{ClockId, clock_gettime};
use perf_event_open_sys::bindings;
use serde::Serialize;
use std::path::Path;

/// Counts of a loop that are known from its instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedCounts {
    /// All instructions.
    pub instructions: u64,
    /// Floating-point operations, one for each element.
    pub fp_ops: u64,
    /// Scalar floating-point arithmetic instructions.
    pub fp_scalar_instructions: u64,
    /// Packed floating-point arithmetic instructions.
    pub fp_packed_instructions: u64,
    /// Branches.
    pub branches: u64,
}

/// A loop of known counts.
#[derive(Clone, Copy)]
pub struct CheckKernel<'a> {
    /// Name of the loop in the rows.
    pub name: &'a str,
    /// Runs a number of iterations.
    pub run: &'a dyn Fn(u64),
    /// Counts of the same number of iterations.
    pub counts: &'a dyn Fn(u64) -> ExpectedCounts,
}

/// Iterations of the short and the long run.
const SHORT: u64 = 1_000;
const LONG: u64 = 501_000;

/// Checks software events, then every event of the file on every PMU of this
/// host. Events that cannot be counted here are skipped with the reason.
pub fn check(root: &Path, file: Option<&EventFile>, kernels: &[CheckKernel<'_>]) -> Vec<CheckRow> {
    let mut rows = check_software_events();
    let Some(file) = file else {
        let reason = "there is no event file for this CPU".to_owned();
        rows.push(CheckRow::from_reason(
            "hardware events".to_owned(),
            "all",
            reason,
        ));
        return rows;
    };
    let present = core_pmus(root);
    for events in &file.pmus {
        let Some(pmu) = present.iter().find(|p| events.is_named(&p.name)) else {
            let reason = format!("no PMU {} on this host", events.names.join(" or "));
            for event in &events.events {
                let (name, reason) = (event.name.clone(), reason.clone());
                rows.push(CheckRow::from_reason(name, "all", reason));
            }
            continue;
        };
        for kernel in kernels {
            for event in &events.events {
                let name = format!("{}/{}/", pmu.name, event.name);
                rows.push(match measure(pmu, events, event, kernel) {
                    Ok(measured) => verdict_row(name, event.unit, kernel, &measured),
                    Err(error) => CheckRow::from_reason(name, kernel.name, error.to_string()),
                });
            }
        }
    }
    rows
}

/// Counts over [`LONG`] less counts over [`SHORT`].
struct CountDifference {
    event: f64,
    instructions: f64,
}

/// Counts the event together with instructions, led by its leader if it needs one.
fn measure(
    pmu: &Pmu,
    events: &PmuEvents,
    event: &EventDefinition,
    kernel: &CheckKernel<'_>,
) -> Result<CountDifference, PerfError> {
    let leader = event.leader.as_deref().and_then(|name| events.event(name));
    let instructions = events.event_of(EventUnit::Instructions);
    let mut group: Vec<&EventDefinition> = leader.into_iter().chain([event]).collect();
    group.extend(instructions.filter(|i| i.name != event.name));
    let specs: Vec<_> = group.iter().map(|e| event_spec(pmu.kind, e)).collect();
    let mut open = CounterGroup::open(&specs, PerfTarget::Thread { tid: 0 })?;
    let (short, long) = (
        count_over_run(&mut open, kernel, SHORT)?,
        count_over_run(&mut open, kernel, LONG)?,
    );
    let difference = |e: &EventDefinition| {
        let at = group.iter().position(|g| g.name == e.name).unwrap_or(0);
        long[at] - short[at]
    };
    Ok(CountDifference {
        event: difference(event),
        instructions: instructions.map_or(0.0, difference),
    })
}

/// Scaled counts over a run; [`PerfError::NoSuchEvent`] when the group was never on the counters.
fn count_over_run(
    group: &mut CounterGroup,
    kernel: &CheckKernel<'_>,
    iterations: u64,
) -> Result<Vec<f64>, PerfError> {
    group.read()?;
    (kernel.run)(iterations);
    let delta = group.read()?;
    if delta.running_ns == 0 {
        return Err(PerfError::NoSuchEvent);
    }
    let scale = delta.enabled_ns as f64 / delta.running_ns as f64;
    Ok(delta.counts.iter().map(|&n| n as f64 * scale).collect())
}

fn verdict_row(
    name: String,
    unit: EventUnit,
    kernel: &CheckKernel<'_>,
    measured: &CountDifference,
) -> CheckRow {
    let counts = |n: fn(&ExpectedCounts) -> u64| {
        (n(&(kernel.counts)(LONG)) - n(&(kernel.counts)(SHORT))) as f64
    };
    let judged = |expected: f64, tolerance: f64| {
        CheckRow::from_counts(
            name.clone(),
            kernel.name,
            expected,
            measured.event,
            tolerance,
        )
    };
    match unit {
        EventUnit::Instructions => judged(counts(|c| c.instructions), 0.002),
        EventUnit::Branches => judged(counts(|c| c.branches), 0.002),
        EventUnit::FpOperations => judged(counts(|c| c.fp_ops), 0.01),
        EventUnit::FpScalarInstructions => judged(counts(|c| c.fp_scalar_instructions), 0.01),
        EventUnit::FpPackedInstructions => judged(counts(|c| c.fp_packed_instructions), 0.01),
        EventUnit::Cycles => {
            let known = counts(|c| c.instructions);
            let verdict = judge_cycles(measured.event, known, measured.instructions);
            inexact_row(name, kernel, measured.event, verdict)
        }
        EventUnit::CyclesOfCause
        | EventUnit::Slots
        | EventUnit::Operations
        | EventUnit::CacheAccesses => inexact_row(name, kernel, measured.event, EventVerdict::Ok),
    }
}

fn inexact_row(
    event: String,
    kernel: &CheckKernel<'_>,
    measured: f64,
    verdict: EventVerdict,
) -> CheckRow {
    CheckRow {
        event,
        kernel: kernel.name.to_owned(),
        expected: None,
        measured: Some(measured),
        relative_error: None,
        verdict,
    }
}

/// Outcome of a check of one event over one loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "verdict", content = "reason")]
pub enum EventVerdict {
    /// The count is within the tolerance.
    Ok,
    /// The count is outside the tolerance; the text has a guess at the cause.
    Wrong(String),
    /// The event was not measured; the text has the reason.
    Skipped(String),
}

/// One event over one loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckRow {
    /// The event, with its PMU for hardware events.
    pub event: String,
    /// The loop.
    pub kernel: String,
    /// Count that is right for the loop; `None` where nothing exact is known.
    pub expected: Option<f64>,
    /// Count that was read; `None` when skipped.
    pub measured: Option<f64>,
    /// Error of the count: (measured - expected) / expected.
    pub relative_error: Option<f64>,
    /// Judgement of the event by this loop.
    #[serde(flatten)]
    pub verdict: EventVerdict,
}

impl CheckRow {
    pub(crate) fn from_reason(event: String, kernel: &str, reason: String) -> Self {
        Self {
            event,
            kernel: kernel.to_owned(),
            expected: None,
            measured: None,
            relative_error: None,
            verdict: EventVerdict::Skipped(reason),
        }
    }

    pub(crate) fn from_counts(
        event: String,
        kernel: &str,
        expected: f64,
        measured: f64,
        tolerance: f64,
    ) -> Self {
        let (error, verdict) = judge(expected, measured, tolerance);
        Self {
            event,
            kernel: kernel.to_owned(),
            expected: Some(expected),
            measured: Some(measured),
            relative_error: Some(error),
            verdict,
        }
    }
}

/// Ratios of measured to expected that betray a known mistake.
const SUSPECTS: [(f64, &str); 3] = [
    (
        0.5,
        "half of it: a large-increment event without its paired counter?",
    ),
    (
        2.0,
        "twice as much: both threads of the core counted, or fused operations as two?",
    ),
    (0.0, "nothing at all: wrong encoding?"),
];

/// Largest distance of a measured ratio from a suspect's at which the suspect is named.
const NEAR: f64 = 0.05;

/// Compares counts; returns the relative error and the judgement. `tolerance` is relative to
/// `expected`.
pub(crate) fn judge(expected: f64, measured: f64, tolerance: f64) -> (f64, EventVerdict) {
    let error = (measured - expected) / expected.max(1.0);
    if error.abs() <= tolerance {
        return (error, EventVerdict::Ok);
    }
    let ratio = measured / expected.max(1.0);
    let near = |(suspect, _): &&(f64, &str)| (ratio - suspect).abs() <= NEAR;
    let named = SUSPECTS.iter().find(near).map(|(_, what)| *what);
    let what = match named {
        Some(what) => what.to_owned(),
        None => format!("off by {:+.1} percent", 100.0 * error),
    };
    (error, EventVerdict::Wrong(format!("counts {what}")))
}

/// Instructions per cycle that no processor leaves on a loop in registers: the widest retires 12,
/// and the longest chain of divisions takes fewer than 64 cycles for each instruction.
const PLAUSIBLE_IPC: std::ops::RangeInclusive<f64> = 1.0 / 64.0..=12.0;

/// Judges cycles, which have no known count. They must be plausible, and not equal to the known
/// count of instructions while the instructions event counts something else, as happens when the
/// two events are exchanged.
pub(crate) fn judge_cycles(cycles: f64, known: f64, counted: f64) -> EventVerdict {
    let exact = |value: f64| (value - known).abs() <= 0.002 * known;
    if exact(cycles) && !exact(counted) {
        let what = "counts instructions, while instructions does not: exchanged?";
        return EventVerdict::Wrong(what.to_owned());
    }
    let ipc = known / cycles.max(1.0);
    if PLAUSIBLE_IPC.contains(&ipc) {
        EventVerdict::Ok
    } else {
        EventVerdict::Wrong(format!("{ipc:.3} instructions per cycle cannot be"))
    }
}

/// Fresh pages to touch.
const PAGES: usize = 512;
/// Number of sleeps; nearly every one is at least one switch away from the CPU.
const SLEEPS: u32 = 50;
/// Steps of a loop that takes some milliseconds of CPU time.
const STEPS: u64 = 20_000_000;

/// One row for each software event that has a known count.
pub(crate) fn check_software_events() -> Vec<CheckRow> {
    vec![
        check_page_faults(),
        check_context_switches(),
        check_task_clock(),
    ]
}

fn row(
    name: &str,
    kernel: &str,
    tolerance: f64,
    measured: Result<(f64, f64), PerfError>,
) -> CheckRow {
    match measured {
        Ok((expected, counted)) => {
            CheckRow::from_counts(name.to_owned(), kernel, expected, counted, tolerance)
        }
        Err(error) => CheckRow::from_reason(name.to_owned(), kernel, error.to_string()),
    }
}

/// Counts one software event over `work` on this thread.
fn count(config: u32, user_only: bool, work: impl FnOnce()) -> Result<f64, PerfError> {
    let spec = PerfEventSpec::software(config, user_only);
    let mut group = CounterGroup::open(&[spec], PerfTarget::Thread { tid: 0 })?;
    group.read()?;
    work();
    let delta = group.read()?;
    Ok(delta.counts.first().copied().unwrap_or(0) as f64)
}

/// Checks page faults. Every first touch of a page faults, unless the kernel backs the memory with
/// huge pages; then there are few faults and nothing is known.
fn check_page_faults() -> CheckRow {
    let faults = bindings::PERF_COUNT_SW_PAGE_FAULTS;
    let measured = count(faults, true, || touch(PAGES));
    let name = "touch fresh pages";
    match measured {
        Ok(n) if n < 0.5 * PAGES as f64 => {
            let reason = "memory comes in huge pages here".to_owned();
            CheckRow::from_reason("page-faults".to_owned(), name, reason)
        }
        measured => row(
            "page-faults",
            name,
            0.05,
            measured.map(|n| (PAGES as f64, n)),
        ),
    }
}

/// Writes one byte to each of `pages` fresh pages.
fn touch(pages: usize) {
    let page_bytes = page_bytes();
    // Zeroed memory of this size is mapped, and no page of it is there before it is written.
    let mut block = vec![0_u8; pages * page_bytes];
    for page in block.chunks_mut(page_bytes) {
        page[0] = 1;
    }
    std::hint::black_box(&mut block);
}

fn check_context_switches() -> CheckRow {
    let switches = bindings::PERF_COUNT_SW_CONTEXT_SWITCHES;
    let sleep =
        || (0..SLEEPS).for_each(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
    let measured = count(switches, false, sleep);
    // Being preempted adds switches. A CPU that its hypervisor took away in between may come
    // back after the time is over, and then there is no switch.
    let bounded = measured.map(|n| (f64::from(SLEEPS), n.min(f64::from(SLEEPS))));
    if bounded == Err(PerfError::NotPermitted) {
        let reason = "switches happen in kernel mode; counting it needs \
                      kernel.perf_event_paranoid 1 or CAP_PERFMON";
        let (event, kernel) = ("context-switches".to_owned(), "short sleeps");
        return CheckRow::from_reason(event, kernel, reason.to_owned());
    }
    row("context-switches", "short sleeps", 0.1, bounded)
}

/// Checks the task clock. The event's clock runs on while CPU time may stand still, in interrupts
/// and while a hypervisor has the CPU, so it lies between CPU time and wall-clock time.
fn check_task_clock() -> CheckRow {
    let clock = bindings::PERF_COUNT_SW_TASK_CLOCK;
    let clocks = [ClockId::CLOCK_THREAD_CPUTIME_ID, ClockId::CLOCK_MONOTONIC];
    let mut bounds_ns = [0.0; 2];
    let measured = count(clock, true, || {
        let before = clocks.map(now_ns);
        let sum = (0..STEPS).fold(0_u64, |sum, step| std::hint::black_box(sum ^ step));
        std::hint::black_box(sum);
        let after = clocks.map(now_ns);
        bounds_ns = [after[0] - before[0], after[1] - before[1]];
    });
    let [least, most] = bounds_ns;
    let measured = measured.map(|n| (n.max(least).min(most.max(least)), n));
    row("task-clock", "busy loop", 0.02, measured)
}

fn now_ns(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.map_or(0.0, |t| t.tv_sec() as f64 * 1e9 + t.tv_nsec() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(expected: f64, measured: f64, words: Option<&str>) {
        match (judge(expected, measured, 0.01).1, words) {
            (EventVerdict::Ok, None) => {}
            (EventVerdict::Wrong(what), Some(words)) => assert!(what.contains(words), "{what}"),
            (verdict, words) => panic!("{verdict:?}, expected {words:?}"),
        }
    }

    #[test]
    fn mistakes_are_named() {
        check(1e6, 1e6, None);
        check(1e6, 1.009e6, None);
        check(1e6, 0.5e6, Some("half"));
        check(1e6, 2e6, Some("twice"));
        check(1e6, 0.0, Some("nothing"));
        check(1e6, 1.3e6, Some("+30.0 percent"));
    }

    #[test]
    fn exchanged_cycles_and_instructions_are_found() {
        assert_eq!(judge_cycles(400.0, 1000.0, 1000.0), EventVerdict::Ok);
        assert_eq!(judge_cycles(1000.0, 1000.0, 1000.0), EventVerdict::Ok);
        let exchanged = judge_cycles(1000.0, 1000.0, 400.0);
        assert!(matches!(exchanged, EventVerdict::Wrong(what) if what.contains("exchanged")));
        assert!(matches!(
            judge_cycles(1.0, 1000.0, 1000.0),
            EventVerdict::Wrong(_)
        ));
    }

    proptest! {
        #[test]
        fn ok_is_exactly_within_the_tolerance(expected in 1.0..1e12_f64, off in -1.0..3.0_f64) {
            let (error, verdict) = judge(expected, expected * (1.0 + off), 0.01);
            prop_assert!((error - off).abs() < 1e-6);
            prop_assert_eq!(verdict == EventVerdict::Ok, error.abs() <= 0.01);
        }
    }
}
