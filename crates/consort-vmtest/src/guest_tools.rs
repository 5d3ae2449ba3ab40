//! Tools of the host to run guests, and programs of this workspace to run in them.

use crate::error::VmError;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use thiserror::Error;

/// qemu, a static busybox and a kernel, all of them found.
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
    /// The first tool that is missing.
    pub fn find() -> Result<Self, MissingTool> {
        let kernel = kernel_at("CONSORT_VM_KERNEL", "vmlinuz");
        Self::locate(&folders(), &kernel, ".ci/install-vm")
    }

    /// [`GuestTools::find`] for a test: prints `skipped: reason` if a tool is missing.
    #[must_use]
    pub fn find_or_skip() -> Option<Self> {
        Self::find().inspect_err(print_skip_reason).ok()
    }

    /// [`GuestTools::find_or_skip`] with the kernel that has sched_ext: at `$CONSORT_EXT_KERNEL` or in the
    /// cache that `.ci/install-ext` fills.
    #[must_use]
    pub fn find_ext_or_skip() -> Option<Self> {
        let kernel = kernel_at("CONSORT_EXT_KERNEL", "ext/vmlinuz");
        Self::locate(&folders(), &kernel, ".ci/install-ext")
            .inspect_err(print_skip_reason)
            .ok()
    }

    /// [`GuestTools::find_or_skip`] with the kernel that has core scheduling: at `$CONSORT_COOKIES_KERNEL`
    /// or in the cache that `.ci/cookies-kernel` fills.
    #[must_use]
    pub fn find_cookies_or_skip() -> Option<Self> {
        let kernel = kernel_at("CONSORT_COOKIES_KERNEL", "cookies/vmlinuz");
        Self::locate(&folders(), &kernel, ".ci/cookies-kernel")
            .inspect_err(print_skip_reason)
            .ok()
    }

    /// Name and version that qemu prints.
    pub(crate) fn qemu_version(&self) -> Result<String, VmError> {
        let output = Command::new(&self.qemu).arg("--version").output();
        let output = output.map_err(VmError::io("run", &self.qemu))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    /// The kernel's ticks per second, if its configuration lies next to it as `config`.
    pub(crate) fn tick_hz(&self) -> Option<u32> {
        let config = std::fs::read_to_string(self.kernel.with_file_name("config")).ok()?;
        let mut lines = config.lines();
        lines.find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok())
    }

    /// Finds the tools. `script` installs the kernel; `.ci/install-vm` installs the other tools for
    /// all kernels.
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

/// Prints why a test did nothing, past the capture of the test harness.
fn print_skip_reason(reason: &MissingTool) {
    // The test is skipped with or without a stderr.
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

/// Returns the program of that name next to the running test, whatever the profile or target
/// folder; cargo builds it if it is missing.
///
/// Cargo names to a test only its own package's programs. Programs of other packages lie in the
/// same folder once `cargo build` or `cargo test --workspace` has made them; one that was made
/// before the last change stays as it was.
///
/// # Errors
/// The program is missing and cargo cannot build it.
pub fn built_program(package: &str, name: &str) -> Result<PathBuf, VmError> {
    let test = std::env::current_exe().map_err(VmError::io("find", "the running test"))?;
    if let Some(found) = find_near(&test, name) {
        return Ok(found);
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "--quiet", "-p", package, "--bin", name]);
    cargo.args(cargo_target_args(&test));
    let status = cargo.status().map_err(VmError::io("run", "cargo"))?;
    let found = find_near(&test, name).filter(|_| status.success());
    found.ok_or_else(|| VmError::NotBuilt(name.to_owned()))
}

/// Finds a program near a test: tests lie in `deps`, programs one folder above.
fn find_near(test: &Path, name: &str) -> Option<PathBuf> {
    let folders = test.ancestors().skip(1).take(2);
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// Arguments with which cargo builds into the folder of the running test: `TARGET/PROFILE/deps`.
fn cargo_target_args(test: &Path) -> Vec<String> {
    let folder = |up: usize| test.ancestors().nth(up);
    let profile = folder(2).and_then(Path::file_name);
    let profile = match profile.map(|name| name.to_string_lossy()) {
        Some(name) if name != "debug" => name.into_owned(),
        _ => "dev".to_owned(),
    };
    let target = folder(3).map_or_else(String::new, |path| path.display().to_string());
    ["--profile", &profile, "--target-dir", &target]
        .map(str::to_owned)
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tool_is_named() {
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

    #[test]
    fn programs_lie_above_the_tests() {
        let folder = tempfile::tempdir().unwrap();
        let test = folder.path().join("debug/deps/test-0123");
        std::fs::create_dir_all(test.parent().unwrap()).unwrap();
        assert_eq!(find_near(&test, "tool"), None);
        let tool = folder.path().join("debug/tool");
        std::fs::write(&tool, "").unwrap();
        assert_eq!(find_near(&test, "tool"), Some(tool));
    }

    #[test]
    fn programs_are_built_near_the_test() {
        let place = |test: &str| cargo_target_args(Path::new(test)).join(" ");
        assert_eq!(place("/t/debug/deps/x"), "--profile dev --target-dir /t");
        assert_eq!(
            place("/t/release/deps/x"),
            "--profile release --target-dir /t"
        );
    }
}
