//! Threads of a program that are behind the others.

use super::super::asymmetric::{LogicalCore, LogicalCoreGroup};
use crate::bottleneck::{Bottleneck, BottleneckKind};
use crate::ids::ThreadId;
use std::collections::{BTreeMap, BTreeSet};

/// Progress of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct ThreadProgress {
    /// Instructions since the program's last barrier, or ever.
    all: f64,
    /// Instructions in this quantum.
    quantum: f64,
    /// Time on a PU in this quantum, ns.
    ran_ns: f64,
}

/// The progress of all threads, and those that lag.
#[derive(Debug, Default)]
pub(super) struct LaggingThreads {
    progress: BTreeMap<ThreadId, ThreadProgress>,
    /// Threads that wait at each barrier.
    waiters: BTreeMap<u64, BTreeSet<ThreadId>>,
    /// Share times effect of each thread that lagged when the last quantum ended.
    effects: BTreeMap<ThreadId, f64>,
}

impl LaggingThreads {
    /// Notes the threads that wait at barriers. When one leaves, its program begins anew.
    pub(super) fn record_barriers(&mut self, bottlenecks: &[Bottleneck]) {
        let barriers = bottlenecks.iter();
        let barriers = barriers.filter(|one| one.kind == BottleneckKind::Barrier);
        let now: BTreeMap<u64, BTreeSet<ThreadId>> = barriers
            .map(|one| (one.id, one.waiters.iter().copied().collect()))
            .collect();
        let before = std::mem::replace(&mut self.waiters, now);
        for (id, waited) in before {
            let waits = self.waiters.get(&id);
            let left = |t: &&ThreadId| !waits.is_some_and(|waits| waits.contains(t));
            if let Some(thread) = waited.iter().find(left) {
                self.reset_program(thread.pid);
            }
        }
    }

    fn reset_program(&mut self, program: u32) {
        let siblings = self.progress.iter_mut();
        let siblings = siblings.filter(|(thread, _)| thread.pid == program);
        siblings.for_each(|(_, progress)| progress.all = 0.0);
    }

    /// Adds an interval.
    pub(super) fn add_interval(&mut self, groups: &[LogicalCoreGroup<'_>]) {
        for seat in groups.iter().flat_map(LogicalCoreGroup::logical_cores) {
            for ran in &seat.ran {
                let progress = self.progress.entry(ran.thread).or_default();
                progress.all += ran.progress;
                progress.quantum += ran.progress;
                progress.ran_ns += ran.cpu_ns;
            }
        }
    }

    /// Ends a quantum: finds the threads that lag now.
    pub(super) fn end_quantum(&mut self, groups: &[LogicalCoreGroup<'_>], quantum_ns: f64) {
        let mut programs: BTreeMap<u32, Vec<(ThreadId, ThreadProgress)>> = BTreeMap::new();
        for thread in active_threads(groups) {
            let progress = *self.progress.entry(thread).or_default();
            let program = programs.entry(thread.pid).or_default();
            program.push((thread, progress));
        }
        let programs = programs.into_values();
        self.effects = programs
            .flat_map(|p| lagging_effects(&p, quantum_ns))
            .collect();
        for progress in self.progress.values_mut() {
            progress.quantum = 0.0;
            progress.ran_ns = 0.0;
        }
    }

    /// Share times effect of a thread as one that lags; 0 if it does not.
    pub(super) fn effect(&self, thread: ThreadId) -> f64 {
        self.effects.get(&thread).copied().unwrap_or(0.0)
    }

    /// Number of other threads of its program, as far as they have been seen to run.
    pub(super) fn siblings(&self, thread: ThreadId) -> usize {
        let of = |other: &&ThreadId| other.pid == thread.pid && **other != thread;
        self.progress.keys().filter(of).count()
    }
}

fn active_threads(groups: &[LogicalCoreGroup<'_>]) -> impl Iterator<Item = ThreadId> {
    let seats = groups.iter().flat_map(LogicalCoreGroup::logical_cores);
    seats.flat_map(|seat: &LogicalCore<'_>| seat.active.iter().copied())
}

/// Effects of those of a program's active threads that lag.
fn lagging_effects(active: &[(ThreadId, ThreadProgress)], quantum_ns: f64) -> Vec<(ThreadId, f64)> {
    let least = active.iter().min_by(|a, b| a.1.all.total_cmp(&b.1.all));
    let Some((_, last)) = least else {
        return Vec::new();
    };
    let lags = |progress: &ThreadProgress| progress.all <= last.all + last.quantum;
    let lagging = active.iter().filter(|(_, progress)| lags(progress));
    let number = lagging.clone().count() as f64;
    let effect = |progress: &ThreadProgress| (progress.ran_ns / quantum_ns).min(1.0) / number;
    lagging
        .map(|(thread, progress)| (*thread, effect(progress)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::thread_id;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_effects_of_a_program_s_threads_are_at_most_its_whole_time(
            done in prop::collection::vec((0.0..1e9, 0.0..1e6, 0.0..2e6), 1..16),
        ) {
            let thread = |(tid, &(all, quantum, ran_ns)): (usize, &(f64, f64, f64))| {
                (thread_id(tid as u32), ThreadProgress { all, quantum, ran_ns })
            };
            let active: Vec<_> = done.iter().enumerate().map(thread).collect();
            let found = lagging_effects(&active, 1e6);
            let sum: f64 = found.iter().map(|(_, effect)| effect).sum();
            prop_assert!(sum <= 1.0 + 1e-9);
            // The last one always lags.
            let least = done.iter().map(|d| d.0).fold(f64::INFINITY, f64::min);
            let last = |id: &ThreadId| active.iter().any(|(t, p)| t == id && p.all == least);
            prop_assert!(found.iter().any(|(id, _)| last(id)));
        }
    }
}
