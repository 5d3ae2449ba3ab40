//! Why a recording cannot be used.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a recording cannot be used.
#[derive(Debug, Error)]
pub enum RecordedError {
    /// It cannot be read.
    #[error("cannot read profile {origin}: {source}", origin = origin.display())]
    Read {
        /// The file.
        origin: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It is not of the form.
    #[error("profile {origin}: {source}", origin = origin.display())]
    Malformed {
        /// The file.
        origin: PathBuf,
        /// What is wrong, and where.
        source: serde_json::Error,
    },
    /// A value is impossible.
    #[error(
        "profile {origin}: {key} of program '{name}' is {value}; expected {expected}",
        origin = origin.display()
    )]
    Value {
        /// The file.
        origin: PathBuf,
        /// The program.
        name: String,
        /// The key.
        key: &'static str,
        /// What it is.
        value: f64,
        /// What would be right.
        expected: &'static str,
    },
    /// Nothing in it was measured.
    #[error(
        "profile {origin}: no program has measures; reports of runs where `consort machine` shows \
         the tier counters have them",
        origin = origin.display()
    )]
    Empty {
        /// The file.
        origin: PathBuf,
    },
    /// A program is in it twice.
    #[error("profile {origin}: program '{name}' is there twice", origin = origin.display())]
    Twice {
        /// The file.
        origin: PathBuf,
        /// The program.
        name: String,
    },
    /// A program is not in it.
    #[error("profile {origin} has no program '{name}'; it has {known}", origin = origin.display())]
    Missing {
        /// The file.
        origin: PathBuf,
        /// The program.
        name: String,
        /// Those that are.
        known: String,
    },
}
