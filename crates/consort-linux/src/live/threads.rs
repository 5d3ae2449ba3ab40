//! The threads of the managed programs, and what was last read of each.

use crate::discovery::ProcSample;
use consort_core::{PuSet, ThreadId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One thread that is there.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) name: Arc<str>,
    /// Where it may run without Consort.
    pub(super) original: Arc<PuSet>,
    /// Whether it may be placed.
    pub(super) managed: bool,
    /// What `/proc` told of it last; nothing was consumed before it was found.
    pub(super) last: Option<ProcSample>,
}

/// All threads that are there, by id.
pub(super) type Threads = BTreeMap<ThreadId, Thread>;
