//! Recordings of managed threads: what each did in every interval, what was planned and why.
//!
//! A recording is a Parquet file with one row per thread and interval ([`COLUMNS`]), written while
//! the threads run and read by whatever reads Parquet. The machine, the policy and the version of
//! the schema are in the file's metadata ([`RecordingInfo`]).
//!
//! Parquet has its index at the end, so that a file that is not finished cannot be read. So a
//! [`RecordingWriter`] writes parts, each a whole file of its own, into `FILE.parts`, and joins them in the
//! end without touching what is in them. What is left of a recording that was killed is such a
//! folder, which holds everything up to the last part and is read like a file.
//!
//! Usage: [`RecordingWriter::create`], [`RecordingWriter::add`] once per turn, [`RecordingWriter::finish`];
//! [`Recording::open`], then [`Recording::quanta`].

mod columns;
mod error;
mod panic_guard;
mod reader;
mod recording_info;
mod row;
mod writer;

pub use columns::{COLUMNS, ColumnInfo};
pub use error::RecordingError;
pub use reader::{Quanta, RecordedQuantum, Recording};
pub use recording_info::{RecordingInfo, SCHEMA};
pub use writer::{RecordingWriter, parts_folder};
