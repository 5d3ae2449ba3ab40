//! Counting tracepoints, for example returns from system calls.
//!
//! # Pitfalls
//!
//! Tracepoints fire in kernel mode: counted for user mode only they stay at 0
//! (`perf_tp_event_match` in kernel/events/core.c), so they need
//! `perf_event_paranoid` 1 or CAP_PERFMON, and tracefs is readable for root only
//! unless remounted.

use super::group::PerfEventSpec;
use perf_event_open_sys::bindings;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Directories at which tracefs may be mounted, in the order of search.
const MOUNTS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// Reason for which a tracepoint cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TracepointError {
    /// There is no `events` folder where tracefs belongs.
    #[error("tracefs is not mounted at /sys/kernel/tracing")]
    NotMounted,
    /// The folder or the file may not be read, by its path.
    #[error("{} may not be read; remount tracefs with a gid that may", .0.display())]
    NotPermitted(PathBuf),
    /// This kernel does not have the tracepoint.
    #[error("this kernel has no tracepoint {0}")]
    Unknown(String),
}

/// Finds the event that counts a tracepoint; `system` and `name` are those in tracefs.
///
/// # Errors
/// When tracefs is not mounted or not readable, or does not have it.
pub fn tracepoint(root: &Path, system: &str, name: &str) -> Result<PerfEventSpec, TracepointError> {
    let events = events_folder(root)?;
    let path = events.join(system).join(name).join("id");
    let unknown = || TracepointError::Unknown(format!("{system}:{name}"));
    let text = std::fs::read_to_string(&path).map_err(|e| match e.kind() {
        ErrorKind::PermissionDenied => TracepointError::NotPermitted(path.clone()),
        _ => unknown(),
    })?;
    let id: u64 = text.trim().parse().map_err(|_| unknown())?;
    Ok(PerfEventSpec {
        kind: bindings::PERF_TYPE_TRACEPOINT,
        config: id,
        config1: 0,
        config2: 0,
        user_only: false,
        filter: None,
    })
}

fn events_folder(root: &Path) -> Result<PathBuf, TracepointError> {
    for mount in MOUNTS {
        let folder = root.join(mount).join("events");
        match std::fs::metadata(&folder) {
            Ok(_) => return Ok(folder),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                return Err(TracepointError::NotPermitted(folder));
            }
            Err(_) => {}
        }
    }
    Err(TracepointError::NotMounted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_read_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let futex = |root: &Path| tracepoint(root, "syscalls", "sys_exit_futex");
        assert_eq!(futex(root.path()), Err(TracepointError::NotMounted));
        let folder = root
            .path()
            .join(MOUNTS[1])
            .join("events/syscalls/sys_exit_futex");
        std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
        let unknown = TracepointError::Unknown("syscalls:sys_exit_futex".to_owned());
        assert_eq!(futex(root.path()), Err(unknown.clone()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("id"), "521\n").unwrap();
        assert_eq!(futex(root.path()).unwrap().config, 521);
        std::fs::write(folder.join("id"), "many\n").unwrap();
        assert_eq!(futex(root.path()), Err(unknown));
    }
}
