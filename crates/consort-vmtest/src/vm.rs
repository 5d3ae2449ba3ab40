//! A guest: its topology, its files and the commands that it runs.

use crate::console::GuestOutput;
use crate::error::VmError;
use crate::guest_tools::GuestTools;
use crate::guest_topology::GuestTopology;
use crate::initramfs::{self, GuestStep};
use crate::{qemu, shared_libraries};
use std::path::Path;
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
    /// Where the program or a library cannot be read.
    pub fn program(self, path: &str, program: &Path) -> Result<Self, VmError> {
        let mut vm = self.file(path, read(program)?);
        for library in shared_libraries::list_libraries(program)? {
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
    /// Where the guest could not be started, stopped early or was still running after `limit`;
    /// it is killed then.
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
