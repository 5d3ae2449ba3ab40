//! Workloads: which programs run together, with how many threads, from when on.
//!
//! An expression such as `4*hmmer+4*povray`, `streamcluster@4+blackscholes@4`,
//! `mix:spec2006/10?seed=7` or `2*./mine.toml` is parsed into a [`WorkloadExpr`];
//! [`Workload::resolve`] looks its programs up in a [`ProgramSource`] and gives one
//! [`ProgramInstance`] per copy. A workload file ([`WorkloadFile`]) adds start delays.
//!
//! A name or path that contains signs of the notation stands in quotes, as in
//! `"./c++.toml"@2+hmmer`. Without quotes the longest existing file wins.

use crate::describe::DescribeError;
use consort_core::quote;
use std::borrow::Cow;
use std::fmt;
use thiserror::Error;

mod file;
mod parse;
mod resolve;

pub use file::{EntrySpec, WorkloadFile, WorkloadSpec};
pub use resolve::{DescriptionFile, ProgramInstance, ProgramSource, Workload};

/// Most instances of one workload, and most threads of one instance.
pub const MAX_INSTANCES: u32 = 65_536;

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
    #[error("the workload has {count} instances; at most {max} are possible", max = MAX_INSTANCES)]
    TooMany {
        /// Number of instances that there would be.
        count: u64,
    },
    /// A workload file in place of a program.
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

/// Prefix of a seeded draw.
const MIX: &str = "mix:";

/// The terms of an expression, in the order in which they were written.
///
/// Writing it out and parsing it again gives the same expression. Names and paths that contain signs
/// of the notation are written in quotes, with `\\` before `"` and `\\`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadExpr {
    /// At least one.
    pub terms: Vec<WorkloadTerm>,
}

/// `COUNT*ITEM`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadTerm {
    /// Number of times that the item runs, from 1.
    pub count: u32,
    /// Program or file that runs.
    pub item: WorkloadItem,
}

/// Thing that a term names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadItem {
    /// `NAME` or `NAME@THREADS`.
    Program {
        /// Name of the program; or of a file, if there is no such program.
        name: String,
        /// Threads; the program's own default if `None`.
        threads: Option<u32>,
    },
    /// `PATH` or `PATH@THREADS`: a program file, or a workload file.
    File {
        /// The path, recognised by its form; see [`crate::input::is_path`].
        path: String,
        /// Threads; the program's own default if `None`.
        threads: Option<u32>,
    },
    /// `mix:SUITE/DRAW` or `mix:SUITE/DRAW?seed=SEED`.
    Mix {
        /// Name of the suite.
        suite: String,
        /// Programs to draw, from 1.
        draw: u32,
        /// Seed of the draw; 0 if `None`.
        seed: Option<u64>,
    },
}

impl fmt::Display for WorkloadExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "+" })?;
            term.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for WorkloadTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count != 1 {
            write!(f, "{}*", self.count)?;
        }
        self.item.fmt(f)
    }
}

impl fmt::Display for WorkloadItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { name, threads } => {
                write_with_threads(f, &quote_unless(is_plain(name), name), *threads)
            }
            Self::File { path, threads } => {
                let plain = !path.contains(['+', '*', '@', '"'])
                    && !path.starts_with(MIX)
                    && path.trim() == path;
                write_with_threads(f, &quote_unless(plain, path), *threads)
            }
            Self::Mix { suite, draw, seed } => {
                write!(f, "mix:{}/{draw}", quote_unless(is_plain(suite), suite))?;
                seed.map_or(Ok(()), |seed| write!(f, "?seed={seed}"))
            }
        }
    }
}

/// True for a character that a name may contain without quotes.
fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// True if a name can stand in an expression without quotes and without a look at files.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name_char)
}

fn quote_unless(plain: bool, text: &str) -> Cow<'_, str> {
    if plain {
        text.into()
    } else {
        quote(text).into()
    }
}

fn write_with_threads(f: &mut fmt::Formatter<'_>, name: &str, threads: Option<u32>) -> fmt::Result {
    f.write_str(name)?;
    threads.map_or(Ok(()), |threads| write!(f, "@{threads}"))
}
