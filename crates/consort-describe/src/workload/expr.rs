//! Workload expressions, parsed.

use std::fmt;

/// The terms of an expression, in the order in which they were written.
///
/// Writing it out and parsing it again gives the same expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadExpr {
    /// At least one.
    pub terms: Vec<Term>,
}

/// `COUNT*ITEM`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Number of times that the item runs, from 1.
    pub count: u32,
    /// Program or file that runs.
    pub item: Item,
}

/// Thing that a term names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// `NAME` or `NAME@THREADS`.
    Program {
        /// Name of the program.
        name: String,
        /// Threads; what the program says when none.
        threads: Option<u32>,
    },
    /// `PATH` or `PATH@THREADS`: a program file, or a workload file.
    File {
        /// The path; holds a `/` or ends in `.toml`.
        path: String,
        /// Threads; what the program says when none.
        threads: Option<u32>,
    },
    /// `mix:SUITE/DRAW` or `mix:SUITE/DRAW?seed=SEED`.
    Mix {
        /// Name of the suite.
        suite: String,
        /// Programs to draw, from 1.
        draw: u32,
        /// Seed of the draw; 0 when none.
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

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count != 1 {
            write!(f, "{}*", self.count)?;
        }
        self.item.fmt(f)
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { name, threads } => with_threads(f, name, *threads),
            Self::File { path, threads } => with_threads(f, path, *threads),
            Self::Mix { suite, draw, seed } => {
                write!(f, "mix:{suite}/{draw}")?;
                seed.map_or(Ok(()), |seed| write!(f, "?seed={seed}"))
            }
        }
    }
}

fn with_threads(f: &mut fmt::Formatter<'_>, name: &str, threads: Option<u32>) -> fmt::Result {
    f.write_str(name)?;
    threads.map_or(Ok(()), |threads| write!(f, "@{threads}"))
}
