//! Kernels, the registry's description of one, and errors before one runs.

use crate::caches::CacheSizes;
use nix::errno::Errno;
use serde::Serialize;
use std::fmt;
use std::time::Duration;
use thiserror::Error;

/// A resumable piece of work whose result is known.
///
/// Work is counted in units of some tens of microseconds. How units are divided
/// among calls does not matter: `work(a)` then `work(b)` leaves the kernel as
/// `work(a + b)` does. (`phases` changes its work with the clock; for it this
/// holds under equal clock readings.)
pub trait Kernel: Send {
    /// Does `units` more units; returns the checksum of all done so far.
    fn work(&mut self, units: u64) -> u64;

    /// The checksum that an undisturbed kernel has after the units done so far.
    fn expected(&self) -> u64;
}

/// A kernel that is not built yet. Calling it on the thread that will run the kernel puts its
/// memory on that thread's node (Linux places a page where it is first touched).
pub type KernelBuilder = Box<dyn FnOnce() -> Result<Box<dyn Kernel>, KernelError> + Send>;

/// Class that a thread that runs the kernel should be recognised as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExpectedClass {
    /// Bound by floating-point units.
    Fp,
    /// Bound by integer units, branches or the front end.
    Int,
    /// Bound by loads and stores.
    Memory,
    /// Several of these, by turns.
    Mixed,
    /// Mostly off the processor, waiting for others or for time.
    Blocked,
}

impl fmt::Display for ExpectedClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fp => "fp",
            Self::Int => "int",
            Self::Memory => "memory",
            Self::Mixed => "mixed",
            Self::Blocked => "blocked",
        })
    }
}

/// Settings that kernels are built for.
#[derive(Clone, Debug)]
pub struct KernelSetup {
    /// Number of threads that run the kernel together; at least 1 are made.
    pub threads: usize,
    /// The caches that chases and streams are sized for.
    pub caches: CacheSizes,
    /// Time that `phases` stays with one kind of work.
    pub phase: Duration,
}

impl Default for KernelSetup {
    /// One thread, default cache sizes, phases of 250 ms.
    fn default() -> Self {
        Self {
            threads: 1,
            caches: CacheSizes::default(),
            phase: Duration::from_millis(250),
        }
    }
}

/// A kernel as the registry has it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct KernelEntry {
    /// The name, as on the command line.
    pub name: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// The part of the machine that it loads.
    pub stresses: &'static str,
    /// Class that a thread that runs it should be recognised as.
    pub class: ExpectedClass,
    /// Makes the builders of one group of threads.
    #[serde(skip)]
    pub(crate) builders: fn(&KernelSetup) -> Vec<KernelBuilder>,
}

impl KernelEntry {
    /// One builder per thread of `setup`. The builders of one call belong together:
    /// `lock` and `barrier` share state among them.
    #[must_use]
    pub fn builders(&self, setup: &KernelSetup) -> Vec<KernelBuilder> {
        (self.builders)(setup)
    }

    /// One kernel that runs alone, whatever `setup.threads` says.
    ///
    /// # Errors
    ///
    /// As a [`KernelBuilder`]: machine code for an unknown processor, or no executable memory.
    pub fn build_one(&self, setup: &KernelSetup) -> Result<Box<dyn Kernel>, KernelError> {
        let alone = KernelSetup {
            threads: 1,
            ..setup.clone()
        };
        let build = self.builders(&alone).into_iter().next();
        build.expect("builders() makes one for each of `threads`, here 1")()
    }
}

/// `setup.threads` builders; the i-th calls `build(i)`.
pub(crate) fn make_builders<K, F>(setup: &KernelSetup, build: F) -> Vec<KernelBuilder>
where
    K: Kernel + 'static,
    F: Fn(usize) -> Result<K, KernelError> + Clone + Send + 'static,
{
    (0..setup.threads.max(1))
        .map(|index| {
            let build = build.clone();
            Box::new(move || Ok(Box::new(build(index)?) as Box<dyn Kernel>)) as KernelBuilder
        })
        .collect()
}

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
        /// The requested size.
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
