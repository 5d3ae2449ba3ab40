//! Errors of reading and resolving a workload, each in one line.

use crate::describe::DescribeError;
use thiserror::Error;

/// Fault of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// The text is not a workload expression.
    #[error("workload '{}': position {position}: {message}", text.escape_debug())]
    Syntax {
        /// The expression.
        text: String,
        /// Position of the fault, in characters from 1.
        position: usize,
        /// Account of what is wrong and what would be right.
        message: String,
    },
    /// There is no program of that name.
    #[error("unknown program '{}'; {hint}", name.escape_debug())]
    UnknownProgram {
        /// The requested name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// There is no suite of that name.
    #[error("unknown suite '{}'; {hint}", name.escape_debug())]
    UnknownSuite {
        /// The requested name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The program cannot use that many threads.
    #[error("program {program} cannot run with {threads} threads; it has {valid}")]
    Threads {
        /// The program.
        program: String,
        /// Requested number of threads.
        threads: u32,
        /// Numbers of threads that it can use.
        valid: String,
    },
    /// An entry of a workload file is impossible.
    #[error(transparent)]
    File(#[from] DescribeError),
    /// Too many instances.
    #[error("the workload has {count} instances; at most {max} are possible", max = super::MAX_INSTANCES)]
    TooMany {
        /// Number of instances that there would be.
        count: u64,
    },
    /// A workload file stands where only a program can.
    #[error("'{}' is a workload file; {expected}", path.escape_debug())]
    NotAProgram {
        /// The file.
        path: String,
        /// Account of what would be right.
        expected: &'static str,
    },
    /// A file or a preset could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// A description that cannot be read; the message is one line and names the file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LoadError(pub String);
