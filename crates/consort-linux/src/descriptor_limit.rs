//! The limit on open files of this process (`RLIMIT_NOFILE`).
//!
//! Managing takes descriptors for each thread, and the usual soft limit of 1,024 is for programs
//! that use `select(2)`. Consort does not, so it raises its own to the hard one. The programs that
//! it starts get the limit that Consort was started with.

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use std::sync::OnceLock;

/// Highest limit that is of use; some hosts allow a thousand million, and tables are made to fit.
const HIGHEST: rlim_t = 1 << 19;

/// Soft and hard limit before the soft one was raised.
static ORIGINAL: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();

/// Raises the soft limit as far as the hard one allows. Call it before anything that shares out
/// descriptors.
pub fn raise_descriptor_limit() {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    let wanted = hard.min(HIGHEST);
    if soft >= wanted {
        return;
    }
    match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
        Ok(()) => drop(ORIGINAL.set((soft, hard))),
        Err(error) => tracing::debug!(%error, "the limit on open files stays {soft}"),
    }
}

/// Limits that programs are to be started with; `None` if they are as they were.
pub(crate) fn original_limits() -> Option<(rlim_t, rlim_t)> {
    ORIGINAL.get().copied()
}
