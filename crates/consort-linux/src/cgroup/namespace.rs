//! The host's control groups from inside a container.

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use std::fs::{self, File};
use std::path::Path;

/// Enters the cgroup namespace of process 1, so that the paths of all control groups are the host's.
///
/// A container that sees the processes of the host (`hostPID: true`, `--pid=host`) may still have a
/// cgroup namespace of its own. There the path of every other group is relative to the container's
/// own group (`/../../system.slice`), and no rule matches it. Call this before threads are started,
/// because the kernel changes the namespace of the calling thread and of its later children alone.
/// Does nothing if both namespaces are the same or `/proc` does not show them.
///
/// # Errors
/// A sentence that says what is missing, if the namespaces differ and the kernel refuses.
pub fn enter_host_cgroups() -> Result<(), String> {
    let namespace_of = |process: &str| {
        let path = Path::new("/proc").join(process).join("ns/cgroup");
        fs::read_link(&path).ok().map(|name| (path, name))
    };
    // Reading that of process 1 takes CAP_SYS_PTRACE for all but its own user.
    let (Some((path, of_host)), Some((_, own))) = (namespace_of("1"), namespace_of("self")) else {
        return Ok(());
    };
    if of_host == own {
        return Ok(());
    }
    let entered = File::open(path)
        .map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or_default()))
        .and_then(|file| setns(file, CloneFlags::CLONE_NEWCGROUP));
    entered.map_err(|error| {
        format!(
            "cannot enter the cgroup namespace of the host ({error}), so that no rule by control \
             group matches a process outside this container; give the container CAP_SYS_ADMIN"
        )
    })
}
