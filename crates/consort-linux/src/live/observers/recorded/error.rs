//! Errors of recordings.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason for which a recording cannot be used.
#[derive(Debug, Error)]
pub enum RecordedMeasuresError {
    /// The file cannot be read.
    #[error("cannot read profile {origin}: {source}", origin = origin.display())]
    Read {
        /// The file.
        origin: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The file is not of the form.
    #[error("profile {origin}: {source}", origin = origin.display())]
    Malformed {
        /// The file.
        origin: PathBuf,
        /// The fault and its place.
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
        /// The value in the file.
        value: f64,
        /// A description of right values.
        expected: &'static str,
    },
    /// No program in the file has measures.
    #[error(
        "profile {origin}: no program has measures; reports of runs where `consort machine` shows \
         the tier counters have them",
        origin = origin.display()
    )]
    Empty {
        /// The file.
        origin: PathBuf,
    },
    /// A program is in the file twice.
    #[error("profile {origin}: program '{name}' is there twice", origin = origin.display())]
    Twice {
        /// The file.
        origin: PathBuf,
        /// The program.
        name: String,
    },
    /// A program is not in the file.
    #[error("profile {origin} has no program '{name}'; it has {known}", origin = origin.display())]
    Missing {
        /// The file.
        origin: PathBuf,
        /// The program.
        name: String,
        /// The programs that are, separated by commas.
        known: String,
    },
}
