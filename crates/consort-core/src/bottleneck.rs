//! Locks and barriers with the threads that hold others up there, as instrumented synchronisation
//! tells it.
//!
//! Policies after Joao et al. ("Bottleneck identification and scheduling in multithreaded
//! applications", ASPLOS 2012) speed up the threads on which most others wait. A machine fills
//! these in only where the threads' synchronisation is instrumented; elsewhere there are none.

use crate::ids::ThreadId;
use serde::{Deserialize, Serialize};

/// Kinds of things that threads wait at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BottleneckKind {
    /// A critical section that one thread at a time is in.
    Lock,
    /// A point that all threads of the program must reach before any goes on.
    Barrier,
}

/// A lock or a barrier at the end of an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// Unique per program and object, the same in every interval.
    pub id: u64,
    /// Its kind.
    pub kind: BottleneckKind,
    /// Threads that keep the others waiting, by id: the holder of the lock, those that have not
    /// reached the barrier.
    pub executers: Vec<ThreadId>,
    /// Threads that wait now; for a lock in the order in which they will have it, for a barrier by
    /// id.
    pub waiters: Vec<ThreadId>,
    /// Time that threads waited within the interval, summed over them, thread·ns ("thread
    /// waiting cycles" of Joao et al. in time).
    #[doc(alias = "thread waiting cycles")]
    pub waited_ns: u64,
}
