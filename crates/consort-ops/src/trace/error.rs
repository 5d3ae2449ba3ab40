use std::io;
use std::path::{Path, PathBuf};

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
    #[error("trace {} has layout {found}; this version reads layout {known}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The file's layout.
        found: u8,
        /// The layout that is read.
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
    /// It goes on where it should have ended.
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
