//! Recordings of managed threads: the observation of each thread in each interval, and the plan.
//!
//! A recording is a Parquet file with one row per thread and interval ([`COLUMNS`]). The machine, the
//! policy and the version of the schema are in the file's metadata ([`RecordingInfo`]).
//!
//! Parquet has its index at the end, so an unfinished file cannot be read. Therefore a
//! [`RecordingWriter`] writes parts, each a complete file, into the folder `FILE.parts`, and at the
//! end copies their row groups into one file. If the recorder is killed, the folder remains; it
//! contains everything up to the last part and is read like a file.
//!
//! To record, call [`RecordingWriter::create`], [`RecordingWriter::add`] once per turn and
//! [`RecordingWriter::finish`]. To read, call [`Recording::open`] and [`Recording::quanta`].

mod error;
mod reader;
mod recording_info;
mod row;
mod writer;

pub use error::RecordingError;
pub use reader::{Quanta, RecordedQuantum, Recording};
pub use recording_info::{RecordingInfo, SCHEMA};
pub use row::{COLUMNS, ColumnInfo};
pub use writer::{RecordingWriter, parts_folder};
