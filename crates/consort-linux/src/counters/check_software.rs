//! The self-test of the software events, against known activity of the test itself.

use super::judge::CheckRow;
use crate::perf::{CounterGroup, PerfError, PerfEventSpec, PerfTarget, page_bytes};
use nix::time::{ClockId, clock_gettime};
use perf_event_open_sys::bindings;

/// Fresh pages to touch.
const PAGES: usize = 512;
/// Sleeps, nearly each of which is at least one switch away from the PU.
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
    // Being preempted adds switches. A PU that its hypervisor took away in between may come
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
/// and while a hypervisor has the PU, so it lies between CPU time and wall-clock time.
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
