//! Errors between a plan and the kernel that follows it.

use crate::probe::Obstacle;
use consort_core::{ProgramId, PuSet, ThreadId};
use std::time::Duration;
use thiserror::Error;

/// Reason why the scheduler did not do what was requested.
#[derive(Debug, Error)]
pub enum ExtError {
    /// This host cannot have the scheduler, permanently or at present.
    #[error(transparent)]
    Unavailable(#[from] Obstacle),
    /// The kernel refused the scheduler.
    #[error("the kernel refused the scheduler: {what}: {message}")]
    Refused {
        /// The step that failed.
        what: &'static str,
        /// The system's answer.
        message: String,
    },
    /// The topology does not fit into the scheduler's tables.
    #[error("{what} {found}; the scheduler has room for at most {most}")]
    TooLarge {
        /// The kind of item that there are too many of.
        what: &'static str,
        /// Number of these items.
        found: u64,
        /// Greatest number that fits.
        most: u64,
    },
    /// The kernel has ended the scheduler.
    #[error("the kernel has ended the scheduler: {0}")]
    Ejected(String),
    /// A thread could not be handed over or taken back.
    #[error("{what} thread {thread}: {source}")]
    Thread {
        /// The operation that failed, as a verb.
        what: &'static str,
        /// The thread.
        thread: ThreadId,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The thread has a scheduling policy that was chosen on purpose.
    #[error("thread {thread} has scheduling policy {policy}; only ordinary threads (0) are taken")]
    Policy {
        /// The thread.
        thread: ThreadId,
        /// Its policy, as the kernel numbers it.
        policy: i32,
    },
    /// The thread has a core-scheduling cookie; cookies together with sched_ext hang hosts.
    #[error("thread {0} has a core-scheduling cookie; cookies and sched_ext exclude each other")]
    Cookie(ThreadId),
    /// The plan names CPUs that the topology does not have.
    #[error("thread {thread} is to run on CPU {pus}, none of which this machine has")]
    NoSuchPu {
        /// The thread.
        thread: ThreadId,
        /// The CPUs of its place.
        pus: PuSet,
    },
    /// A program or thread is in two slots.
    #[error("program {0} is in two time slots; one is possible")]
    TwoSlots(ProgramId),
    /// A slot is shorter than the kernel can switch.
    #[error("a time slot of {0:?} is too short; at least 1 ms is possible")]
    ShortSlot(Duration),
    /// The slots take so long that the kernel's watchdog would find waiting threads stalled.
    #[error(
        "the time slots take {total:?} in all; at most {most:?}, half of the watchdog's patience, is safe"
    )]
    LongSlots {
        /// All slots together.
        total: Duration,
        /// Greatest time that they may take.
        most: Duration,
    },
}
