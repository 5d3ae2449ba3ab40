//! The software tier: events that the kernel itself counts for a thread.
//!
//! # Pitfalls
//!
//! Context switches, migrations and tracepoints happen in kernel mode. Where only user mode may be
//! counted (`perf_event_paranoid` 2 without CAP_PERFMON) the kernel accepts them and counts 0 for
//! ever (`perf_exclude_event` in kernel/events/core.c); they are not offered there.
//!
//! Futex returns are those of every futex call, wakes included: each is a transition from kernel
//! to user mode. Calls by way of `futex_wait(2)` and its kin (Linux 6.7), which the C library and
//! the Rust library do not use, are not among them.

use crate::perf::{CounterGroup, GroupDelta, PerfError, PerfEventSpec, PerfTarget, tracepoint};
use crate::proc::RunState;
use consort_core::{Reading, Sample, Signal, Tier};
use nix::sys::resource::{Resource, getrlimit};
use perf_event_open_sys::bindings;
use std::ffi::CStr;
use std::path::Path;
use std::sync::Arc;

/// The software events that can be counted here, and the obstacles to the others.
#[derive(Clone, Debug, Default)]
pub struct SoftwareEvents {
    counted: Vec<EventMeaning>,
    specs: Vec<PerfEventSpec>,
    /// Tracepoints that are counted on request only ([`SoftwareEvents::count_calls`]), each with a
    /// phrase for users who lack it.
    calls: Vec<(EventMeaning, PerfEventSpec, &'static str)>,
    /// One sentence for each signal that is missing.
    pub notes: Vec<String>,
    /// A group with tracepoints on this process's thread. When the last event of a tracepoint is
    /// closed, the kernel removes the tracepoint and the caller waits for all CPUs, some 40 ms.
    /// While this group is open, no other is the last. `None` if descriptors are few.
    _held: Option<Arc<CounterGroup>>,
}

/// Meaning of an event of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventMeaning {
    /// A signal's value.
    Signal(Signal),
    /// Number of sleeps that the thread has begun.
    Sleeps,
}

/// Descriptors that a process may have where some can be kept for speed alone.
const ENOUGH_DESCRIPTORS: u64 = 64;

/// Tracepoints: the meaning, the subsystem and name in tracefs, and a phrase for users who lack it.
const TRACEPOINTS: [(EventMeaning, &str, &str, &str); 2] = [
    (
        EventMeaning::Signal(Signal::FutexReturns),
        "syscalls",
        "sys_exit_futex",
        "futex returns",
    ),
    (
        EventMeaning::Sleeps,
        "sched",
        "sched_switch",
        "blocking returns",
    ),
];

/// Events that are counted in kernel mode in addition to those of [`USER`].
const KERNEL: [(Signal, u32); 2] = [
    (
        Signal::ContextSwitches,
        bindings::PERF_COUNT_SW_CONTEXT_SWITCHES,
    ),
    (Signal::Migrations, bindings::PERF_COUNT_SW_CPU_MIGRATIONS),
];

/// Events that can be counted in user mode alone. The first leads.
const USER: [(Signal, u32); 2] = [
    (Signal::CpuTime, bindings::PERF_COUNT_SW_TASK_CLOCK),
    (Signal::PageFaults, bindings::PERF_COUNT_SW_PAGE_FAULTS),
];

impl SoftwareEvents {
    /// Finds the events that can be counted, by opening them on the caller.
    ///
    /// # Errors
    /// When not even the task clock can be counted.
    pub fn probe(root: &Path) -> Result<Self, PerfError> {
        let all = Self::from_events(&[&USER[..], &KERNEL[..]].concat(), false);
        match all.open(PerfTarget::Thread { tid: 0 }) {
            Ok(_) => Ok(all.with_tracepoints(root)),
            Err(PerfError::NotPermitted) => {
                let mut user = Self::from_events(&USER, true);
                user.open(PerfTarget::Thread { tid: 0 })?;
                let missing = "context switches, migrations, futex and blocking returns happen in \
                               kernel mode; to count them lower kernel.perf_event_paranoid to 1 or \
                               grant CAP_PERFMON";
                user.notes.push(missing.to_owned());
                Ok(user)
            }
            Err(error) => Err(error),
        }
    }

    fn from_events(events: &[(Signal, u32)], user_only: bool) -> Self {
        Self {
            counted: events
                .iter()
                .map(|&(s, _)| EventMeaning::Signal(s))
                .collect(),
            specs: events
                .iter()
                .map(|&(_, config)| PerfEventSpec::software(config, user_only))
                .collect(),
            calls: Vec::new(),
            notes: Vec::new(),
            _held: None,
        }
    }

    /// Adds the tracepoints that tracefs shows.
    fn with_tracepoints(mut self, root: &Path) -> Self {
        for (counted, system, name, what) in TRACEPOINTS {
            match tracepoint(root, system, name) {
                Ok(spec) => self.calls.push((counted, spec, what)),
                Err(reason) => self.notes.push(format!("no {what}: {reason}")),
            }
        }
        self
    }

    /// Returns true if there are futex or blocking returns that could be counted and are not.
    pub fn has_uncounted_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Counts futex and blocking returns too, from now on. While a tracepoint is counted anywhere,
    /// all system calls, or all switches, of the machine are dearer, and taking it down makes the
    /// end of a run some 0.1 s longer. Returns a sentence for each that the kernel refuses.
    pub fn count_calls(&mut self) -> Vec<String> {
        let mut refused = Vec::new();
        for (counted, spec, what) in std::mem::take(&mut self.calls) {
            self.specs.push(match counted {
                EventMeaning::Signal(_) => spec,
                EventMeaning::Sleeps => filter_blocked_switches(spec),
            });
            self.counted.push(counted);
            match self.open(PerfTarget::Thread { tid: 0 }) {
                Ok(group) => {
                    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
                    self._held = (limit >= ENOUGH_DESCRIPTORS).then(|| Arc::new(group));
                }
                Err(_) => {
                    self.specs.pop();
                    self.counted.pop();
                    refused.push(format!("no {what}: the tracepoint may not be counted"));
                }
            }
        }
        refused
    }

    /// Signals that follow from the counts, those included that are counted on request.
    pub fn signals(&self) -> Vec<Signal> {
        let of = |counted: &EventMeaning| match counted {
            EventMeaning::Signal(signal) => *signal,
            EventMeaning::Sleeps => Signal::BlockingReturns,
        };
        let calls = self.calls.iter().map(|(counted, _, _)| counted);
        self.counted.iter().chain(calls).map(of).collect()
    }

    /// The group to open on each thread.
    pub fn layout(&self) -> Vec<Vec<PerfEventSpec>> {
        vec![self.specs.clone()]
    }

    /// Opens the group on one thread.
    ///
    /// # Errors
    /// When the kernel refuses the events, the thread is gone, or descriptors are exhausted.
    pub fn open(&self, target: PerfTarget) -> Result<CounterGroup, PerfError> {
        CounterGroup::open(&self.specs, target)
    }

    /// Adds the group's counts to a sample. Returns the number of sleeps that the thread has begun,
    /// where it is counted: blocking returns follow only with its state, which the caller knows.
    pub fn fill(&self, sample: &mut Sample, delta: &GroupDelta) -> Option<u64> {
        let mut sleeps = None;
        for (counted, &count) in self.counted.iter().zip(&delta.counts) {
            match *counted {
                EventMeaning::Signal(signal) => {
                    let reading = Reading {
                        raw: count as f64,
                        tier: Tier::Software,
                        enabled_ns: delta.enabled_ns,
                        running_ns: delta.running_ns,
                    };
                    sample.set(signal, reading);
                }
                EventMeaning::Sleeps => sleeps = Some(count),
            }
        }
        sleeps
    }
}

// Returns from blocking system calls are derived from the sleeps that a thread begins and its state at
// the end of an interval. The tracepoint `sched:sched_switch` fires in the context of the thread
// that leaves its CPU. Counted per thread where the thread's state is not "running" ([`BLOCKED`])
// it is the exact number of sleeps begun: voluntary switches, preemptions excluded. A sleep that
// has ended is a sleep that was begun and is not under way, so
//
// > sleeps ended so far = sleeps begun so far − (1 if asleep now)
//
// and of the sleeps ended those within futex calls, which are counted on their own, are taken
// off. One descriptor per thread, read with the group; whether the thread is asleep now is read
// from `/proc` only if it has begun a sleep in the interval.
//
// Errors:
//
// - Futex calls that did not sleep (wakes above all) are taken off too, so that the number of
//   *other* returns is a lower bound in an interval in which the thread also called futex.
//   Whether it returned from the kernel at all is exact: it did if either count is positive.
// - A call that sleeps twice before it returns counts twice; waits for a page from disk count as
//   calls; so does being stopped and continued.
// - A sleep between the two reads is counted one interval late, never twice.

/// Filter for the states that a thread reports while it sleeps, of `TASK_REPORT`
/// (include/linux/sched.h); that of a preempted thread is the next higher bit.
const BLOCKED: &CStr = c"prev_state & 255";

/// Restricts the tracepoint `sched:sched_switch` to switches of a thread that goes to sleep.
pub(super) fn filter_blocked_switches(sched_switch: PerfEventSpec) -> PerfEventSpec {
    sched_switch.with_filter(BLOCKED)
}

/// One thread's sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SleepCounter {
    begun: u64,
    ended: u64,
    asleep: bool,
}

impl SleepCounter {
    /// The sleeps of a thread that is seen for the first time.
    pub(crate) fn from_state(state: RunState) -> Self {
        let asleep = state != RunState::Runnable;
        Self {
            begun: u64::from(asleep),
            ended: 0,
            asleep,
        }
    }

    /// State of the thread at the end of an interval, where it can be inferred: true for runnable.
    /// A thread that has begun no sleep is awake if it ran, and asleep if it was asleep before and
    /// did not run. One that was woken but has not run yet seems asleep for that interval.
    pub(crate) fn infer_state(&self, begun: u64, ran: bool) -> Option<bool> {
        match (begun, ran, self.asleep) {
            (0, true, _) => Some(true),
            (0, false, true) => Some(false),
            _ => None,
        }
    }

    /// Takes an interval in; returns the number of sleeps that ended in it.
    pub(crate) fn add_interval(&mut self, begun: u64, runnable: bool) -> u64 {
        self.asleep = !runnable;
        self.begun += begun;
        let ended = self.begun.saturating_sub(u64::from(self.asleep));
        let now = ended.saturating_sub(self.ended);
        self.ended = self.ended.max(ended);
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn return_is_counted_when_sleep_ends() {
        let mut sleeps = SleepCounter::from_state(RunState::Runnable);
        assert_eq!(sleeps.add_interval(1, false), 0);
        assert_eq!(sleeps.add_interval(0, false), 0);
        assert_eq!(sleeps.add_interval(0, true), 1);
    }

    #[test]
    fn thread_found_asleep_returns_on_waking() {
        let mut sleeps = SleepCounter::from_state(RunState::Sleeping);
        assert_eq!(sleeps.add_interval(0, false), 0);
        assert_eq!(sleeps.add_interval(2, false), 2);
        assert_eq!(sleeps.add_interval(0, true), 1);
    }

    #[test]
    fn sleep_between_reads_is_counted_late_once() {
        let mut sleeps = SleepCounter::from_state(RunState::Runnable);
        // The counter was read before the sleep, the state after it.
        assert_eq!(sleeps.add_interval(0, false), 0);
        assert_eq!(sleeps.add_interval(1, true), 1);
    }

    #[test]
    fn certain_state_is_inferred() {
        let awake = SleepCounter::from_state(RunState::Runnable);
        let asleep = SleepCounter::from_state(RunState::Sleeping);
        assert_eq!(awake.infer_state(0, true), Some(true));
        assert_eq!(asleep.infer_state(0, true), Some(true));
        assert_eq!(asleep.infer_state(0, false), Some(false));
        assert_eq!(asleep.infer_state(1, true), None);
        // It waits for a CPU, or is gone.
        assert_eq!(awake.infer_state(0, false), None);
    }

    proptest! {
        #[test]
        fn in_the_end_every_sleep_that_is_over_was_counted_once(
            quanta in prop::collection::vec((0u64..4, any::<bool>()), 1..40), found_asleep: bool,
        ) {
            let state = if found_asleep { RunState::Sleeping } else { RunState::Runnable };
            let mut sleeps = SleepCounter::from_state(state);
            let mut begun = u64::from(found_asleep);
            let mut counted = 0;
            for (n, runnable) in quanta {
                // Who is asleep has begun a sleep.
                let runnable = runnable || begun + n == 0;
                counted += sleeps.add_interval(n, runnable);
                begun += n;
                let over = begun - u64::from(!runnable);
                prop_assert!(counted >= over && counted <= begun);
            }
        }
    }
}
