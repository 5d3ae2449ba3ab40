//! Why a workload cannot be had, each in one line.

use super::source::LoadError;
use crate::describe::DescribeError;
use thiserror::Error;

/// Fault of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// The expression is none.
    #[error("workload '{}': position {position}: {message}", text.escape_debug())]
    Syntax {
        /// The expression.
        text: String,
        /// Where, in characters from 1.
        position: usize,
        /// What is wrong and what would be right.
        message: String,
    },
    /// There is no program of that name.
    #[error("unknown program '{}'; {hint}", name.escape_debug())]
    UnknownProgram {
        /// What was asked for.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// There is no suite of that name.
    #[error("unknown suite '{}'; {hint}", name.escape_debug())]
    UnknownSuite {
        /// What was asked for.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The program cannot use that many threads.
    #[error("program {program} cannot run with {threads} threads; it has {valid}")]
    Threads {
        /// The program.
        program: String,
        /// What was asked for.
        threads: u32,
        /// What it can use.
        valid: String,
    },
    /// What an entry of a workload file asks for cannot be had.
    #[error(transparent)]
    File(#[from] DescribeError),
    /// Too many instances.
    #[error("the workload has {count} instances; at most {max} are possible", max = super::MAX_INSTANCES)]
    TooMany {
        /// How many there would be.
        count: u64,
    },
    /// A workload file stands where only a program can.
    #[error("'{}' is a workload file; {expected}", path.escape_debug())]
    NotAProgram {
        /// The file.
        path: String,
        /// What would be right.
        expected: &'static str,
    },
    /// A file or a preset could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
}
