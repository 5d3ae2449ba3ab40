//! Support for the scheduler on this host, and the first obstacle to it.

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Support of a host for sched_ext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchedExtSupport {
    /// A scheduler can be started.
    Ready,
    /// No scheduler can be started, for this reason.
    Not(Obstacle),
}

impl SchedExtSupport {
    /// Returns the obstacle, if there is one.
    ///
    /// # Errors
    /// [`Obstacle`] if no scheduler can be started.
    pub fn check_ready(self) -> Result<(), Obstacle> {
        match self {
            Self::Ready => Ok(()),
            Self::Not(obstacle) => Err(obstacle),
        }
    }
}

/// The first obstacle to a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Obstacle {
    /// The kernel is older than 6.12 or was built without it.
    #[error("this kernel has no sched_ext (CONFIG_SCHED_CLASS_EXT): no {}", .0.display())]
    NoKernel(PathBuf),
    /// The program was built without the scheduler.
    #[error("this build has no sched_ext scheduler; build one with --features ext")]
    NotBuilt,
    /// The kernel does not describe its types.
    #[error("this kernel does not describe its types (CONFIG_DEBUG_INFO_BTF): no {}", .0.display())]
    NoTypes(PathBuf),
    /// Another scheduler is loaded.
    #[error("the sched_ext scheduler '{name}' is {state} already; a kernel has one at a time")]
    Taken {
        /// Its own name.
        name: String,
        /// Its state in the kernel's words, such as `enabled`.
        state: String,
    },
    /// Loading a scheduler needs CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN.
    #[error("loading a sched_ext scheduler needs root (CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN)")]
    NotPrivileged,
}

/// Checks whether a scheduler can be started on the host whose `/` is `root`; only reads.
///
/// Obstacles of kernels and builds that can never have one come before obstacles that may change.
#[must_use]
pub fn probe(root: &Path) -> SchedExtSupport {
    match check_host(root) {
        Ok(()) => SchedExtSupport::Ready,
        Err(obstacle) => SchedExtSupport::Not(obstacle),
    }
}

fn check_host(root: &Path) -> Result<(), Obstacle> {
    let folder = root.join("sys/kernel/sched_ext");
    if !folder.is_dir() {
        return Err(Obstacle::NoKernel(folder));
    }
    if !cfg!(feature = "bpf") {
        return Err(Obstacle::NotBuilt);
    }
    let types = root.join("sys/kernel/btf/vmlinux");
    if !types.is_file() {
        return Err(Obstacle::NoTypes(types));
    }
    check_not_taken(&folder)?;
    check_privilege(root)
}

/// Returns an error if another scheduler is loaded. The file `state` always exists, the folder of
/// the loaded scheduler only while there is one.
fn check_not_taken(folder: &Path) -> Result<(), Obstacle> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let state = read("state").trim().to_owned();
    if state.is_empty() || state == "disabled" {
        return Ok(());
    }
    let name = match read("root/ops").trim() {
        "" => "(without a name)".to_owned(),
        name => name.to_owned(),
    };
    Err(Obstacle::Taken { name, state })
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// Returns an error if the process lacks the privilege. If the host does not show the capabilities,
/// the check passes, because the kernel decides in the end.
fn check_privilege(root: &Path) -> Result<(), Obstacle> {
    let status = std::fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
    let mut lines = status.lines();
    let effective = lines.find_map(|line| line.strip_prefix("CapEff:"));
    let held = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    let needed = [CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF];
    match held {
        Some(held) if needed.iter().any(|cap| held >> cap & 1 == 0) => Err(Obstacle::NotPrivileged),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[cfg(feature = "bpf")]
    const ALL: &str = "Name:\tx\nCapEff:\t000001ffffffffff\n";

    struct Host(tempfile::TempDir);

    impl Host {
        fn with(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(folder)
        }

        fn obstacle(&self) -> String {
            probe(self.0.path()).check_ready().unwrap_err().to_string()
        }
    }

    const IDLE: (&str, &str) = ("sys/kernel/sched_ext/state", "disabled\n");
    #[cfg(feature = "bpf")]
    const TYPES: (&str, &str) = ("sys/kernel/btf/vmlinux", "");

    #[test]
    fn missing_kernel_support_comes_first() {
        let obstacle = Host::with(&[]).obstacle();
        assert!(obstacle.contains("CONFIG_SCHED_CLASS_EXT"), "{obstacle}");
    }

    #[cfg(not(feature = "bpf"))]
    #[test]
    fn build_without_scheduler_is_reported() {
        assert!(Host::with(&[IDLE]).obstacle().contains("--features ext"));
    }

    #[cfg(feature = "bpf")]
    #[test]
    fn loaded_scheduler_is_named() {
        let enabled = ("sys/kernel/sched_ext/state", "enabled\n");
        let ops = ("sys/kernel/sched_ext/root/ops", "lavd_1.0\n");
        let obstacle = Host::with(&[enabled, ops, TYPES]).obstacle();
        assert!(
            obstacle.contains("'lavd_1.0' is enabled already"),
            "{obstacle}"
        );
        assert!(
            Host::with(&[enabled, TYPES])
                .obstacle()
                .contains("(without a name)")
        );
    }

    #[cfg(feature = "bpf")]
    #[test]
    fn types_and_privileges_are_needed() {
        assert!(Host::with(&[IDLE]).obstacle().contains("DEBUG_INFO_BTF"));
        let none = ("proc/self/status", "CapEff:\t0000000000000000\n");
        assert!(
            Host::with(&[IDLE, TYPES, none])
                .obstacle()
                .contains("needs root")
        );
        let host = Host::with(&[IDLE, TYPES, ("proc/self/status", ALL)]);
        assert_eq!(probe(host.0.path()), SchedExtSupport::Ready);
    }
}
