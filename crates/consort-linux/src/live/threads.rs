//! The threads of the managed programs, and what was last read of each.

use crate::counters::Sleeps;
use crate::discovery::ProcSample;
use consort_core::{ProgramId, PuSet, Sample, ThreadId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// One thread that is there.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) name: Arc<str>,
    /// Where it may run without Consort.
    pub(super) original: Arc<PuSet>,
    /// Whether it may be placed.
    pub(super) managed: bool,
    /// Whether it is let alone for its affinity only, so that it may be paused.
    pub(super) self_placed: bool,
    /// What `/proc` told of it last; nothing was consumed before it was found.
    pub(super) last: Option<ProcSample>,
    /// When that was.
    pub(super) read: Option<Instant>,
    /// Its sleeps since it was first seen.
    pub(super) sleeps: Option<Sleeps>,
}

/// One thread that has exited since the last observation.
#[derive(Clone, Debug)]
pub(super) struct Parted {
    pub(super) id: ThreadId,
    pub(super) thread: Thread,
    /// The program that it belonged to.
    pub(super) program: ProgramId,
    /// What was counted of it since the last observation.
    pub(super) sample: Sample,
}

/// All threads that are there, by id.
pub(super) type Threads = BTreeMap<ThreadId, Thread>;
