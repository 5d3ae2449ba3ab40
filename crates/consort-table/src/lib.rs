//! Results as tables of typed columns, for files and for data frames.
//!
//! Purpose: whatever leaves Consort as a data set is a [`Table`]; a [`TableSink`] writes tables of one
//! shape into one file, CSV always, Arrow and Parquet with the features `arrow` and `parquet`.
//! Usage: build a table with [`Table::with_text`], [`Table::with_counts`] and [`Table::with_numbers`]; write it with
//! [`write()`], or part by part with a [`TableSink`]. Pitfall: a column's unit is metadata in Arrow and
//! Parquet and is not in CSV, so units belong into names, or into a column of their own.

#[cfg(feature = "arrow")]
pub mod columnar;
mod error;
mod read;
mod sink;
mod table;
mod table_format;

pub use error::TableError;
pub use read::{TableShape, read_csv};
pub use sink::{TableSink, write};
pub use table::{Column, Table, Values};
pub use table_format::{TableFormat, is_table_path};
