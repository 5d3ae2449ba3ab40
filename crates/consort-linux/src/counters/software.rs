//! The software tier: events that the kernel itself counts for a thread.
//!
//! # Pitfalls
//!
//! Context switches, migrations and tracepoints happen in kernel mode. Where
//! only user mode may be counted (`perf_event_paranoid` 2 without CAP_PERFMON)
//! the kernel accepts them and counts 0 for ever (`perf_exclude_event` in
//! kernel/events/core.c); they are not offered there.
//!
//! Futex returns are those of every futex call, wakes included: each is a transition from kernel
//! to user mode. Calls by way of `futex_wait(2)` and its kin (Linux 6.7), which the C library and
//! the Rust library do not use, are not among them.

use super::sleeps::filter_blocked_switches;
use crate::perf::{CounterGroup, GroupDelta, PerfError, PerfEventSpec, PerfTarget, tracepoint};
use consort_core::{Reading, Sample, Signal, Tier};
use nix::sys::resource::{Resource, getrlimit};
use perf_event_open_sys::bindings;
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
            Err(PerfError::NotPermitted) => Self::probe_user_only(),
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

    fn keep_group_open(&mut self, group: CounterGroup) {
        let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
        self._held = (limit >= ENOUGH_DESCRIPTORS).then(|| Arc::new(group));
    }

    fn probe_user_only() -> Result<Self, PerfError> {
        let mut user = Self::from_events(&USER, true);
        user.open(PerfTarget::Thread { tid: 0 })?;
        let missing = "context switches, migrations, futex and blocking returns happen in kernel mode; \
                       to count them lower kernel.perf_event_paranoid to 1 or grant CAP_PERFMON";
        user.notes.push(missing.to_owned());
        Ok(user)
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
                Ok(group) => self.keep_group_open(group),
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
                EventMeaning::Signal(signal) => sample.set(signal, reading(count, delta)),
                EventMeaning::Sleeps => sleeps = Some(count),
            }
        }
        sleeps
    }
}

fn reading(count: u64, delta: &GroupDelta) -> Reading {
    Reading {
        raw: count as f64,
        tier: Tier::Software,
        enabled_ns: delta.enabled_ns,
        running_ns: delta.running_ns,
    }
}
