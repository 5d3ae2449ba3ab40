//! A logical core as a rule sees it.

use crate::ids::{PuId, ThreadId};
use crate::sample::{Sample, ThreadObservation};
use crate::signal::Signal;

/// A software thread that was active on a logical core when the interval began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::policies) struct ActiveThread<'a> {
    /// The thread.
    pub(in crate::policies) thread: ThreadId,
    /// Progress in the interval: instructions where they are counted, else ns of CPU time.
    pub(in crate::policies) progress: f64,
    /// Values that the machine observed of it.
    pub(in crate::policies) sample: &'a Sample,
    /// Its time on a PU in the interval, ns.
    pub(in crate::policies) cpu_ns: f64,
}

/// A logical core.
#[derive(Clone, Debug)]
pub(in crate::policies) struct LogicalCore<'a> {
    /// Its number.
    pub(in crate::policies) logical: usize,
    /// Threads as the machine observed them: the logical core itself in hardware form, its threads
    /// in software form.
    pub(in crate::policies) seen: Vec<&'a ThreadObservation>,
    /// Software threads that were active on it when the interval began.
    pub(in crate::policies) ran: Vec<ActiveThread<'a>>,
    /// Software threads that are active on it now: they run or could, and do not wait for others.
    pub(in crate::policies) active: Vec<ThreadId>,
}

impl LogicalCore<'_> {
    /// Returns true where nothing would run on it: its active bit is not set.
    pub(in crate::policies) fn is_idle(&self) -> bool {
        !self.seen.iter().any(|thread| is_runnable(thread))
    }

    /// Returns true where it is in kernel mode, so that it cannot be exchanged.
    pub(in crate::policies) fn is_in_kernel(&self) -> bool {
        self.seen.iter().any(|t| is_set(t, Signal::KernelMode))
    }

    /// Returns true where it can be exchanged with profit: it has something to run, in user mode.
    pub(in crate::policies) fn is_ready(&self) -> bool {
        !self.is_idle() && !self.is_in_kernel()
    }

    /// Returns true where it went from kernel to user code in the interval: its transition bit.
    /// Where the privilege level is not told, returns from futex and blocking calls stand for it.
    pub(in crate::policies) fn has_returned_to_user(&self) -> bool {
        let calls = [Signal::FutexReturns, Signal::BlockingReturns];
        let any = |thread: &&ThreadObservation| {
            let told = thread.sample.get(Signal::UserReturns);
            told.map_or_else(|| calls.iter().any(|&s| is_set(thread, s)), |n| n > 0.0)
        };
        self.seen.iter().any(any)
    }

    /// Progress in the interval: instructions where they are counted, else ns of CPU time.
    pub(in crate::policies) fn progress(&self) -> f64 {
        self.seen.iter().map(|thread| progress(thread)).sum()
    }
}

/// The logical cores of a group.
#[derive(Clone, Debug)]
pub(in crate::policies) struct LogicalCoreGroup<'a> {
    /// Its number.
    pub(in crate::policies) index: usize,
    /// Seats on large cores.
    pub(in crate::policies) large: Vec<LogicalCore<'a>>,
    /// Seats on small cores.
    pub(in crate::policies) small: Vec<LogicalCore<'a>>,
}

impl<'a> LogicalCoreGroup<'a> {
    /// All seats of the group, those on large cores first.
    pub(in crate::policies) fn logical_cores(&self) -> impl Iterator<Item = &LogicalCore<'a>> {
        self.large.iter().chain(&self.small)
    }
}

/// A thread's progress over the interval.
pub(super) fn progress(thread: &ThreadObservation) -> f64 {
    let sample = &thread.sample;
    let counted = sample.get(Signal::Instructions);
    counted.unwrap_or_else(|| sample.cpu_time_ns())
}

/// Returns true for a thread that runs or could; where that is not told, for one that ran in the
/// interval.
pub(super) fn is_runnable(thread: &ThreadObservation) -> bool {
    let told = thread.sample.get(Signal::Runnable);
    told.map_or_else(|| thread.sample.cpu_time_ns() > 0.0, |on| on > 0.0)
}

/// Returns true for a thread that is runnable and does not spin for others.
pub(super) fn is_active(thread: &ThreadObservation) -> bool {
    is_runnable(thread) && !is_set(thread, Signal::Waiting)
}

fn is_set(thread: &ThreadObservation, signal: Signal) -> bool {
    thread.sample.get(signal).is_some_and(|value| value > 0.0)
}

/// Returns true where a thread may be exchanged with any of `pus`: it is managed and allowed on
/// all.
pub(super) fn is_allowed_on_all(thread: &ThreadObservation, pus: &[PuId]) -> bool {
    thread.managed && pus.iter().all(|&pu| thread.original.contains(pu))
}
