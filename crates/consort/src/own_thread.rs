//! Threads of this process: starting one, where the calling one runs, and how long it has.

use anyhow::{Context, Result};
use consort_core::PuId;
use consort_linux::enact::bind_calling_thread;
use nix::time::{ClockId, clock_gettime};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

/// Starts a thread; an error where the user may have no more of them.
pub(crate) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>> {
    let started = Builder::new().spawn_scoped(scope, work);
    started.context("cannot start a thread")
}

/// Binds the calling thread to one PU.
pub(crate) fn pin(pu: PuId) -> Result<()> {
    bind_calling_thread(pu).with_context(|| format!("cannot run on PU {pu}"))
}

/// CPU time of the calling thread, ns.
pub(crate) fn cpu_ns() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(u64::try_from(Duration::from(now).as_nanos())?)
}
