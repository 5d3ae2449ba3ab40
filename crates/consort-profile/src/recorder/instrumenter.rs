//! The emulator, and the plugin in a file where the emulator can load it.

use std::io::Write;
use std::process::{Command, Output};

use tempfile::NamedTempFile;

use super::{ProgramRecordError, RecordedPart};

/// QEMU's user-mode emulator of x86-64.
const EMULATOR: &str = "qemu-x86_64";

/// All that the emulator can, AVX2 included; without fast string copies, which real cores do in
/// large pieces and an emulator byte by byte.
pub(super) const PROCESSOR: &str = "max,-erms";

/// The plugin for QEMU before version 9, and since.
const PLUGINS: [&[u8]; 2] = [
    include_bytes!(concat!(env!("OUT_DIR"), "/recorder-1.so")),
    include_bytes!(concat!(env!("OUT_DIR"), "/recorder-2.so")),
];
/// First version of QEMU that asks for the second generation of its interface.
const SECOND_GENERATION: u32 = 9;

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

    pub(super) const fn emulator(&self) -> &'static str {
        EMULATOR
    }

    pub(super) fn plugin_argument(&self, channel: i32, extent: RecordedPart) -> String {
        let path = self.plugin.path().display();
        let limit = extent.limit.unwrap_or(0);
        let mut argument = format!(
            "{path},channel={channel},skip={},limit={limit}",
            extent.skip
        );
        if let Some(s) = extent.sampling {
            argument += &format!(",every={},warm={},window={}", s.every, s.warm, s.window);
        }
        argument
    }
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
    fn the_major_version_is_found() {
        assert_eq!(
            major_version("qemu-x86_64 version 7.2.22 (Debian 1:7.2)"),
            Some(7)
        );
        assert_eq!(major_version("qemu-x86_64 version 10.0.2"), Some(10));
        assert_eq!(major_version("no emulator"), None);
    }
}
