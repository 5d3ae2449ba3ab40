//! The emulator, and the plugin in a file that the emulator can load.

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, Command, Output};

use nix::fcntl::{FcntlArg, fcntl};
use tempfile::NamedTempFile;

use super::program::ResolvedProgram;
use super::{OutputDestination, ProgramRecordError, RecordedPart, WindowPlan};

/// QEMU's user-mode emulator of x86-64.
const EMULATOR: &str = "qemu-x86_64";

/// All features that the emulator has, AVX2 included, except fast string copies: real cores do
/// these in large pieces, an emulator byte by byte.
const PROCESSOR: &str = "max,-erms";

/// The plugin for QEMU before version 9, and for later versions.
const PLUGINS: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/recorder-1.so")),
    include_bytes!(concat!(env!("OUT_DIR"), "/recorder-2.so")),
];
/// First version of QEMU that needs the second generation of its plugin interface.
const SECOND_GENERATION: u32 = 9;

/// Lowest number of the descriptor through which the emulator reports: high, so that the program
/// does not use the same number.
const HIGH: i32 = 600;

pub(super) struct Instrumenter {
    plugin: NamedTempFile,
}

impl Instrumenter {
    pub(super) fn find() -> Result<Self, ProgramRecordError> {
        let version = read_emulator_output("--version")?;
        let newer = major_version(&version).is_some_and(|major| major >= SECOND_GENERATION);
        if !read_emulator_output("--help")?.contains("-plugin") {
            return Err(ProgramRecordError::NoPlugins { emulator: EMULATOR });
        }
        Self::write(PLUGINS[usize::from(newer)])
    }

    fn write(bytes: &[u8]) -> Result<Self, ProgramRecordError> {
        if bytes.is_empty() {
            return Err(ProgramRecordError::NoRecorder);
        }
        let file = tempfile::Builder::new().suffix(".so").tempfile();
        let plugin = file.and_then(|mut plugin| plugin.write_all(bytes).map(|()| plugin));
        let plugin = plugin
            .map_err(|e| ProgramRecordError::system_error("write the recorder to a file", e))?;
        Ok(Self { plugin })
    }

    /// Starts a program under the emulator, which reports through `to`.
    pub(super) fn start_program(
        &self,
        program: &ResolvedProgram,
        extent: RecordedPart,
        output: OutputDestination,
        to: &OwnedFd,
    ) -> Result<Child, ProgramRecordError> {
        let channel = duplicate_inheritable(to)?;
        let mut emulator = Command::new(EMULATOR);
        emulator.args(["-cpu", PROCESSOR, "-plugin"]);
        emulator.arg(self.plugin_argument(channel.as_raw_fd(), extent));
        emulator.arg("-0").arg(&program.name);
        emulator.arg(&program.path).args(&program.arguments);
        if output == OutputDestination::Aside {
            emulator.stdout(std::io::stderr());
        }
        emulator.spawn().map_err(ProgramRecordError::spawn_error)
    }

    fn plugin_argument(&self, channel: i32, extent: RecordedPart) -> String {
        let path = self.plugin.path().display();
        let limit = extent.limit.unwrap_or(0);
        let mut argument = format!(
            "{path},channel={channel},skip={},limit={limit}",
            extent.skip
        );
        if let Some(plan) = WindowPlan::new(extent) {
            argument += &plan.to_plugin_options();
        }
        argument
    }
}

/// A copy of the descriptor under a high number, without `O_CLOEXEC`, so that the emulator inherits
/// it.
fn duplicate_inheritable(of: &OwnedFd) -> Result<OwnedFd, ProgramRecordError> {
    let number = fcntl(of, FcntlArg::F_DUPFD(HIGH)).or_else(|_| fcntl(of, FcntlArg::F_DUPFD(3)));
    let number = number.map_err(ProgramRecordError::channel_error)?;
    // SAFETY: the descriptor was just made and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn read_emulator_output(argument: &str) -> Result<String, ProgramRecordError> {
    let output: Output = match Command::new(EMULATOR).arg(argument).output() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(ProgramRecordError::NoEmulator { emulator: EMULATOR });
        }
        output => output.map_err(ProgramRecordError::spawn_error)?,
    };
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Major version in `qemu-x86_64 version 7.2.22 (...)`.
fn major_version(version: &str) -> Option<u32> {
    let number = version
        .split_whitespace()
        .skip_while(|word| *word != "version")
        .nth(1)?;
    number.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn major_version_is_found() {
        assert_eq!(
            major_version("qemu-x86_64 version 7.2.22 (Debian 1:7.2)"),
            Some(7)
        );
        assert_eq!(major_version("qemu-x86_64 version 10.0.2"), Some(10));
        assert_eq!(major_version("no emulator"), None);
    }
}
