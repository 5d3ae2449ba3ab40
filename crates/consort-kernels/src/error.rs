//! Errors before a kernel runs.

use nix::errno::Errno;
use thiserror::Error;

/// Reason why a kernel could not be built or started.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The kernel writes machine code, and none is known for this processor.
    #[error("kernel `{kernel}` writes machine code for x86_64 and aarch64 only, this is {arch}")]
    Unsupported {
        /// The kernel's name in the registry.
        kernel: &'static str,
        /// The processor architecture of this build.
        arch: &'static str,
    },
    /// The system refused executable memory.
    #[error("cannot get {bytes} bytes of executable memory: {source}; a hardened host forbids it")]
    Mapping {
        /// The size asked for.
        bytes: usize,
        /// Error of `mmap` or `mprotect`.
        source: Errno,
    },
    /// A thread could not be started.
    #[error("cannot start thread `{name}`: {source}; ask for fewer threads or raise `ulimit -u`")]
    Spawn {
        /// The thread's name.
        name: String,
        /// Error of the system.
        source: std::io::Error,
    },
}
