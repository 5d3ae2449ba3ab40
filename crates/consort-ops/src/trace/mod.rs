//! Traces: the operations that a program executed, in a file.
//!
//! A file has what every execution of an operation shares once, and then, per thread, the blocks in
//! the order of execution with what differs between executions: addresses of data, outcomes of
//! branches. Blocks follow their last successor and addresses continue by their last stride more
//! often than not, so what is written is mostly zeros, which Deflate makes small.
//!
//! Layout, version 1. All numbers are LEB128 varints unless said otherwise, signed ones zigzag:
//!
//! ```text
//! "consort trace\n" 01            magic and version
//! section*                        raw length, length, so many bytes of zlib (with its checksum)
//!   0  what is told of it         program, sampling, threads with their counts
//!   1  code                       operations, and blocks as lists of them
//!   then four per thread          successors, outcomes, targets, addresses
//! ```
//!
//! A file that opens is whole: [`Trace::open`] checks every block and address once, so that
//! [`Trace::ops`] has nothing left to fail at.

use code::TraceCode;
pub use file::{ThreadTrace, TraceInfo, TraceSampling};
pub use recorder::TraceRecorder;
use std::io;
use std::path::{Path, PathBuf};
pub use streams::Ops;
use streams::ThreadStreams;

mod bytes;
mod code;
mod file;
mod recorder;
mod streams;

/// Operations that a program executed, thread by thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    about: TraceInfo,
    threads: Vec<ThreadTrace>,
    code: TraceCode,
    streams: Vec<ThreadStreams>,
}

impl Trace {
    /// Account of the recording.
    #[must_use]
    pub const fn info(&self) -> &TraceInfo {
        &self.about
    }

    /// Threads, the first the one that the program started with.
    #[must_use]
    pub fn threads(&self) -> &[ThreadTrace] {
        &self.threads
    }

    /// Instructions of all threads.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.threads.iter().map(|thread| thread.instructions).sum()
    }

    /// Operations of the first thread from the beginning; none if there is no thread.
    ///
    /// Starting again is as cheap as calling again.
    #[must_use]
    pub fn ops(&self) -> Ops<'_> {
        self.thread_ops(0)
    }

    /// Operations of thread `number` from the beginning; none if there is no such thread.
    #[must_use]
    pub fn thread_ops(&self, number: usize) -> Ops<'_> {
        Ops::new(&self.code, self.streams.get(number))
    }
}

#[cfg(test)]
mod tests;

/// Reason why a trace cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read or written.
    #[error("cannot {what} trace {}: {source}", path.display())]
    File {
        /// Action that failed.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{} is no trace; one is made by `consort profile --trace FILE -- CMD`", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file has a layout that is not known here.
    #[error("trace {} has layout {found}; this version reads layouts {oldest} to {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The file's layout.
        found: u8,
        /// The oldest layout that is read.
        oldest: u8,
        /// The newest layout that is read.
        known: u8,
    },
    /// The file is not as it was written.
    #[error("trace {} is damaged: {reason}; record it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Damage found.
        reason: Damage,
    },
}

/// Fault in the bytes of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It ends too early.
    #[error("it ends early")]
    Truncated,
    /// Compressed bytes do not decompress to what they were.
    #[error("a section does not decompress")]
    Section,
    /// A section is larger than any that is written.
    #[error("a section is too large")]
    TooLarge,
    /// A number or text is none.
    #[error("a number or text cannot be")]
    Value,
    /// It counts otherwise than it says.
    #[error("its counts do not add up")]
    Count,
    /// It continues behind its end.
    #[error("there is something behind its end")]
    Excess,
}

impl TraceError {
    pub(super) fn from_damage(path: &Path, reason: Damage) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            reason,
        }
    }

    pub(super) fn from_io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File {
            what,
            path: path.to_owned(),
            source,
        }
    }
}
