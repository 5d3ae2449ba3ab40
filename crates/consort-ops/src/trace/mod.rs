//! Traces: the operations that a program executed, in a file.
//!
//! A file has what every execution of an operation shares once, and then, per thread, the blocks
//! in the order of execution with what only execution tells: addresses of data, outcomes of
//! branches. Blocks follow their last successor and addresses go on by their last stride more
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

mod bytes;
mod code;
mod error;
mod file;
mod head;
mod ops;
mod recorder;
mod streams;

pub use error::{Damage, TraceError};
pub use head::{ThreadTrace, TraceInfo, TraceSampling};
pub use ops::Ops;
pub use recorder::TraceRecorder;

use code::TraceCode;
use streams::ThreadStreams;

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

    /// Operations of the first thread from the beginning; nothing where there is no thread.
    ///
    /// Starting again is as cheap as asking again.
    #[must_use]
    pub fn ops(&self) -> Ops<'_> {
        self.thread_ops(0)
    }

    /// Operations of thread `number` from the beginning; nothing where there is no such thread.
    #[must_use]
    pub fn thread_ops(&self, number: usize) -> Ops<'_> {
        Ops::new(&self.code, self.streams.get(number))
    }
}

#[cfg(test)]
mod tests;
