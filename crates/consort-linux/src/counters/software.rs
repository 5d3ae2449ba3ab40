//! The software tier: what the kernel itself counts of a thread.
//!
//! # Pitfalls
//!
//! Context switches, migrations and tracepoints happen in kernel mode. Where
//! only user mode may be counted (`perf_event_paranoid` 2 without CAP_PERFMON)
//! the kernel accepts them and counts 0 for ever (`perf_exclude_event` in
//! kernel/events/core.c); they are not offered there.

use crate::perf::{CounterGroup, EventSpec, GroupDelta, PerfError, Target, tracepoint};
use consort_core::{Reading, Sample, Signal, Tier};
use perf_event_open_sys::bindings;
use std::path::Path;

/// Which software events can be counted here, and what keeps the others away.
#[derive(Clone, Debug, Default)]
pub struct SoftwareEvents {
    signals: Vec<Signal>,
    specs: Vec<EventSpec>,
    /// One sentence for each signal that is missing.
    pub notes: Vec<String>,
}

/// Events that are counted in kernel mode too, beside those of [`USER`].
const KERNEL: [(Signal, u32); 2] = [
    (
        Signal::ContextSwitches,
        bindings::PERF_COUNT_SW_CONTEXT_SWITCHES,
    ),
    (Signal::Migrations, bindings::PERF_COUNT_SW_CPU_MIGRATIONS),
];

/// Events that user mode alone shows. The first leads.
const USER: [(Signal, u32); 2] = [
    (Signal::CpuTime, bindings::PERF_COUNT_SW_TASK_CLOCK),
    (Signal::PageFaults, bindings::PERF_COUNT_SW_PAGE_FAULTS),
];

impl SoftwareEvents {
    /// Finds out by opening events on the caller.
    ///
    /// # Errors
    /// When not even the task clock can be counted.
    pub fn probe(root: &Path) -> Result<Self, PerfError> {
        let all = Self::of(&[&USER[..], &KERNEL[..]].concat(), false);
        match all.open(Target::Thread { tid: 0 }) {
            Ok(_) => Ok(all.with_futex(root)),
            Err(PerfError::NotPermitted) => Self::user_only(),
            Err(error) => Err(error),
        }
    }

    fn of(events: &[(Signal, u32)], user_only: bool) -> Self {
        Self {
            signals: events.iter().map(|&(signal, _)| signal).collect(),
            specs: events
                .iter()
                .map(|&(_, config)| EventSpec::software(config, user_only))
                .collect(),
            notes: Vec::new(),
        }
    }

    fn user_only() -> Result<Self, PerfError> {
        let mut user = Self::of(&USER, true);
        user.open(Target::Thread { tid: 0 })?;
        let missing = "context switches, migrations and futex returns happen in kernel mode; \
                       to count them lower kernel.perf_event_paranoid to 1 or grant CAP_PERFMON";
        user.notes.push(missing.to_owned());
        Ok(user)
    }

    /// Adds the returns from futex waits where tracefs allows.
    fn with_futex(mut self, root: &Path) -> Self {
        match tracepoint(root, "syscalls", "sys_exit_futex") {
            Ok(spec) => {
                self.specs.push(spec);
                self.signals.push(Signal::FutexReturns);
            }
            Err(reason) => self.notes.push(format!("no futex returns: {reason}")),
        }
        if self.open(Target::Thread { tid: 0 }).is_err() {
            self.specs.pop();
            self.signals.pop();
            self.notes
                .push("no futex returns: the tracepoint may not be counted".to_owned());
        }
        self
    }

    /// What can be counted, in the order of the group.
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// The group to open on each thread.
    pub fn layout(&self) -> Vec<Vec<EventSpec>> {
        vec![self.specs.clone()]
    }

    /// Opens the group on one thread.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn open(&self, target: Target) -> Result<CounterGroup, PerfError> {
        CounterGroup::open(&self.specs, target)
    }

    /// Adds what the group counted to a sample.
    pub fn fill(&self, sample: &mut Sample, delta: &GroupDelta) {
        for (&signal, &count) in self.signals.iter().zip(&delta.counts) {
            let reading = Reading {
                raw: count as f64,
                tier: Tier::Software,
                enabled_ns: delta.enabled_ns,
                running_ns: delta.running_ns,
            };
            sample.set(signal, reading);
        }
    }
}
