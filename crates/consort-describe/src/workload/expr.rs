//! Workload expressions, parsed.

use consort_core::quote;
use std::borrow::Cow;
use std::fmt;

/// Prefix of a seeded draw.
pub(super) const MIX: &str = "mix:";

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
                write_with_threads(f, &quote_unless(is_plain_path(path), path), *threads)
            }
            Self::Mix { suite, draw, seed } => {
                write!(f, "mix:{}/{draw}", quote_unless(is_plain(suite), suite))?;
                seed.map_or(Ok(()), |seed| write!(f, "?seed={seed}"))
            }
        }
    }
}

/// True for a character of which names consist that stand without quotes.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// True if a name can stand in an expression without quotes and without a look at files.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_name_char)
}

/// True if a path can stand in an expression without quotes.
fn is_plain_path(path: &str) -> bool {
    !path.contains(['+', '*', '@', '"']) && !path.starts_with(MIX) && path.trim() == path
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
