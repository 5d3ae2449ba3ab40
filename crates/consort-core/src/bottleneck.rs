//! Locks and barriers with the threads that hold others up, from instrumented synchronisation.
//!
//! Policies after Joao et al. ("Bottleneck identification and scheduling in multithreaded
//! applications", ASPLOS 2012) speed up the threads for which most others wait. Machines without
//! instrumented synchronisation report no bottlenecks.

use crate::ids::ThreadId;
use serde::{Deserialize, Serialize};

/// Kind of synchronisation at which threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    /// A critical section, which one thread at a time can enter.
    Lock,
    /// A point that all threads of the program must reach before any thread continues.
    Barrier,
}

/// A lock or a barrier at the end of an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// Number that is unique per program and object, and the same in every interval.
    pub id: u64,
    /// Its kind.
    pub kind: BottleneckKind,
    /// Threads that keep others waiting, sorted by id: the holder of the lock, or the threads that
    /// have not reached the barrier.
    pub executers: Vec<ThreadId>,
    /// Threads that wait now: for a lock in the order in which they will get it, for a barrier
    /// sorted by id.
    pub waiters: Vec<ThreadId>,
    /// Time that threads waited within the interval, summed over them, thread·ns ("thread
    /// waiting cycles" of Joao et al. in time).
    #[doc(alias = "thread waiting cycles")]
    pub waited_ns: u64,
}
