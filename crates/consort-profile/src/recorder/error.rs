use std::io;
use std::path::PathBuf;

/// Reason why a program cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum ProgramRecordError {
    /// Nothing was to be run.
    #[error("no command; expected -- CMD")]
    NoCommand,
    /// There is no such program.
    #[error("cannot find program '{name}'")]
    NotFound {
        /// As it was asked for.
        name: String,
    },
    /// The program cannot be read.
    #[error("cannot read program {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The program is of another kind.
    #[error("{} is {what}; only 64-bit x86 programs and scripts for them can be profiled", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Thing that it is instead.
        what: &'static str,
    },
    /// The emulator is missing.
    #[error("{emulator} is not installed; Debian has it in the package qemu-user")]
    NoEmulator {
        /// Name of the emulator.
        emulator: &'static str,
    },
    /// The emulator takes no plugins.
    #[error("{emulator} takes no plugins; expected one built with them, as Debian's qemu-user is")]
    NoPlugins {
        /// Name of the emulator.
        emulator: &'static str,
    },
    /// This build has no plugin.
    #[error(
        "this consort was built without a C compiler, so it has no recorder; build it with one"
    )]
    NoRecorder,
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// Action that failed.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// The recorder said what is not known here.
    #[error("the recorder's report is garbled at {at}; the program may have written to it")]
    Garbled {
        /// Part that was being read.
        at: &'static str,
    },
}

impl ProgramRecordError {
    pub(super) fn channel_error(source: nix::Error) -> Self {
        Self::system_error("make a channel to the emulator", source.into())
    }

    pub(super) fn spawn_error(source: io::Error) -> Self {
        Self::system_error("start the emulator", source)
    }

    pub(super) fn wait_error(source: io::Error) -> Self {
        Self::system_error("wait for the emulator", source)
    }

    pub(super) const fn system_error(what: &'static str, source: io::Error) -> Self {
        Self::System { what, source }
    }
}
