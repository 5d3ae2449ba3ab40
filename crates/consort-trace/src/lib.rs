//! Recordings of managed threads: what each did in every interval, what was planned and why.
//!
//! A recording is a Parquet file with one row per thread and interval ([`COLUMNS`]), written while
//! the threads run and read by whatever reads Parquet. The machine, the policy and the version of
//! the schema are in the file's metadata ([`About`]).
//!
//! Parquet has its index at the end, so that a file that is not finished cannot be read. So a
//! [`Recorder`] writes parts, each a whole file of its own, into `FILE.parts`, and joins them in the
//! end without touching what is in them. What is left of a recording that was killed is such a
//! folder, which holds everything up to the last part and is read like a file.
//!
//! Usage: [`Recorder::create`], [`Recorder::add`] once per turn, [`Recorder::finish`];
//! [`Recording::open`], then [`Recording::quanta`].

mod about;
mod columns;
mod error;
mod held;
mod reader;
mod row;
mod writer;

pub use about::{About, SCHEMA};
pub use columns::{COLUMNS, ColumnInfo};
pub use error::TraceError;
pub use reader::{Quanta, Quantum, Recording};
pub use writer::{Recorder, parts_of};
