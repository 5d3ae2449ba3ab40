//! Tools of the host to run guests: qemu, a static busybox and a kernel.

use crate::error::VmError;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use thiserror::Error;

/// The tools for guests, all of them found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestTools {
    pub(crate) qemu: PathBuf,
    pub(crate) busybox: PathBuf,
    pub(crate) kernel: PathBuf,
}

/// The first thing that guests need and this host lacks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no {what} at {looked}; {script} installs it")]
pub struct MissingTool {
    what: &'static str,
    looked: String,
    script: &'static str,
}

impl GuestTools {
    /// Looks in `PATH` for qemu and busybox and, for the kernel, at `$CONSORT_VM_KERNEL` or in
    /// the cache that `.ci/install-vm` fills.
    ///
    /// # Errors
    /// [`MissingTool`] says what is not there.
    pub fn find() -> Result<Self, MissingTool> {
        let kernel = kernel_at("CONSORT_VM_KERNEL", "vmlinuz");
        Self::locate(&folders(), &kernel, ".ci/install-vm")
    }

    /// [`GuestTools::find`] for a test: prints `skipped: reason` where there is no host for guests.
    #[must_use]
    pub fn find_or_skip() -> Option<Self> {
        Self::find()
            .inspect_err(|missing| print_skip_reason(&missing.to_string()))
            .ok()
    }

    /// [`GuestTools::find_or_skip`] with the kernel that has sched_ext: at `$CONSORT_EXT_KERNEL` or in the
    /// cache that `.ci/install-ext` fills.
    #[must_use]
    pub fn find_ext_or_skip() -> Option<Self> {
        let kernel = kernel_at("CONSORT_EXT_KERNEL", "ext/vmlinuz");
        Self::locate(&folders(), &kernel, ".ci/install-ext")
            .inspect_err(|missing| print_skip_reason(&missing.to_string()))
            .ok()
    }

    /// [`GuestTools::find_or_skip`] with the kernel that has core scheduling: at `$CONSORT_COOKIES_KERNEL`
    /// or in the cache that `.ci/cookies-kernel` fills.
    #[must_use]
    pub fn find_cookies_or_skip() -> Option<Self> {
        let kernel = kernel_at("CONSORT_COOKIES_KERNEL", "cookies/vmlinuz");
        Self::locate(&folders(), &kernel, ".ci/cookies-kernel")
            .inspect_err(|missing| print_skip_reason(&missing.to_string()))
            .ok()
    }

    /// Name and version that qemu prints.
    pub(crate) fn qemu_version(&self) -> Result<String, VmError> {
        let output = Command::new(&self.qemu).arg("--version").output();
        let output = output.map_err(VmError::io("run", &self.qemu))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    /// The kernel's ticks per second, where its configuration lies beside it as `config`.
    pub(crate) fn tick_hz(&self) -> Option<u32> {
        let config = std::fs::read_to_string(self.kernel.with_file_name("config")).ok()?;
        let mut lines = config.lines();
        lines.find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok())
    }

    /// Finds the tools. `script` installs the kernel, and for all kernels `.ci/install-vm` the
    /// tools.
    fn locate(
        folders: &[PathBuf],
        kernel: &Path,
        script: &'static str,
    ) -> Result<Self, MissingTool> {
        Ok(Self {
            qemu: tool(folders, "qemu-system-x86_64")?,
            busybox: tool(folders, "busybox")?,
            kernel: require_file("kernel", kernel.to_owned(), script)?,
        })
    }
}

/// Says why a test did nothing, past the capture of the test harness.
fn print_skip_reason(reason: &str) {
    // Without a stderr there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

fn tool(folders: &[PathBuf], name: &'static str) -> Result<PathBuf, MissingTool> {
    let mut candidates = folders.iter().map(|folder| folder.join(name));
    candidates.find(|path| path.is_file()).ok_or(MissingTool {
        what: name,
        looked: "any folder of PATH".into(),
        script: ".ci/install-vm",
    })
}

fn require_file(
    what: &'static str,
    path: PathBuf,
    script: &'static str,
) -> Result<PathBuf, MissingTool> {
    if path.is_file() {
        return Ok(path);
    }
    Err(MissingTool {
        what,
        looked: path.display().to_string(),
        script,
    })
}

/// The folders of `PATH`.
fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// The kernel that the variable names, or else the one of the cache.
fn kernel_at(variable: &str, cached: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| cache().join(cached), PathBuf::from)
}

/// Folder of the cache, by the same rule as in `.ci/install-vm`.
fn cache() -> PathBuf {
    let from = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    from("CONSORT_VM_CACHE").unwrap_or_else(|| {
        from("XDG_CACHE_HOME")
            .unwrap_or_else(|| from("HOME").unwrap_or_default().join(".cache"))
            .join("consort/vm")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        let kernel = folder.path().join("vmlinuz");
        const SCRIPT: &str = ".ci/install-vm";
        let what = || {
            GuestTools::locate(&folders, &kernel, SCRIPT)
                .unwrap_err()
                .to_string()
        };
        assert!(what().starts_with("no qemu-system-x86_64 at any folder of PATH"));
        std::fs::write(folder.path().join("qemu-system-x86_64"), "").unwrap();
        assert!(what().starts_with("no busybox"));
        std::fs::write(folder.path().join("busybox"), "").unwrap();
        assert!(what().contains("vmlinuz; .ci/install-vm"));
        std::fs::write(&kernel, "").unwrap();
        assert_eq!(
            GuestTools::locate(&folders, &kernel, SCRIPT)
                .unwrap()
                .kernel,
            kernel
        );
    }
}
