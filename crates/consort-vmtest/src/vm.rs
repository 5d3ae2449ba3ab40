//! A guest: its topology, its files and the commands that it runs.

use crate::console::GuestOutput;
use crate::error::VmError;
use crate::guest_tools::GuestTools;
use crate::guest_topology::GuestTopology;
use crate::initramfs::{self, GuestStep};
use crate::qemu;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A guest that is described step by step and then [run](Vm::run) once.
#[derive(Clone, Debug)]
pub struct Vm {
    topology: GuestTopology,
    files: Vec<(String, Vec<u8>)>,
    steps: Vec<GuestStep>,
}

impl Vm {
    /// A guest with busybox and nothing else.
    #[must_use]
    pub fn new(topology: GuestTopology) -> Self {
        Self {
            topology,
            files: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// Puts an executable file at an absolute path of the guest.
    #[must_use]
    pub fn file(mut self, path: &str, contents: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.to_owned(), contents.into()));
        self
    }

    /// Puts a program of the host at an absolute path of the guest, with the shared libraries
    /// that it needs at the paths where it looks for them.
    ///
    /// # Errors
    /// The program or a library cannot be read.
    pub fn program(self, path: &str, program: &Path) -> Result<Self, VmError> {
        let mut vm = self.file(path, read(program)?);
        for library in shared_libraries(program)? {
            let name = library.to_string_lossy().into_owned();
            if !vm.files.iter().any(|(path, _)| *path == name) {
                vm = vm.file(&name, read(&library)?);
            }
        }
        Ok(vm)
    }

    /// Runs a shell command in the guest after those given before; its output is the section
    /// `name`, which is one word without `/`.
    #[must_use]
    pub fn command(mut self, name: &str, script: &str) -> Self {
        self.steps.push(GuestStep {
            name: name.to_owned(),
            script: script.to_owned(),
        });
        self
    }

    /// Boots the guest, runs the commands and switches it off.
    ///
    /// # Errors
    /// The guest could not be started, stopped early or was still running after `limit`; it is
    /// killed then.
    pub fn run(&self, host: &GuestTools, limit: Duration) -> Result<GuestOutput, VmError> {
        let archive = initramfs::pack(&read(&host.busybox)?, &self.files, &self.steps);
        let folder = tempfile::tempdir().map_err(VmError::io("make", std::env::temp_dir()))?;
        let path = folder.path().join("initramfs");
        std::fs::write(&path, archive).map_err(VmError::io("write", &path))?;
        qemu::run(host, self.topology, &path, limit)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, VmError> {
    std::fs::read(path).map_err(VmError::io("read", path))
}

/// Returns the absolute paths of a program's shared libraries and of the dynamic loader; nothing
/// for a static program.
///
/// They let a guest run the very binary that the test build has made. The alternative, a second
/// build with `-C target-feature=+crt-static`, works too but compiles every dependency again.
fn shared_libraries(program: &Path) -> Result<Vec<PathBuf>, VmError> {
    let output = Command::new("ldd")
        .arg(program)
        .output()
        .map_err(VmError::io("run ldd on", program))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let message = String::from_utf8_lossy(&output.stderr);
    if is_static(&text) || is_static(&message) {
        return Ok(Vec::new());
    }
    if !output.status.success() || text.contains("not found") {
        return Err(VmError::Libraries {
            path: program.to_owned(),
            message: format!("{text}{message}"),
        });
    }
    Ok(parse_ldd(&text))
}

fn is_static(text: &str) -> bool {
    text.contains("not a dynamic executable") || text.contains("statically linked")
}

/// Lines are `name => /path (address)`, `/loader (address)` or `linux-vdso.so.1 (address)`.
fn parse_ldd(text: &str) -> Vec<PathBuf> {
    text.lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')))
        .map(PathBuf::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_without_the_vdso() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x7f)\n";
        let paths = parse_ldd(text);
        assert_eq!(
            paths,
            ["/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from)
        );
    }

    #[test]
    fn both_messages_for_static_programs_are_known() {
        assert!(is_static("\tstatically linked\n"));
        assert!(is_static("\tnot a dynamic executable\n"));
        assert!(!is_static("\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n"));
    }
}
