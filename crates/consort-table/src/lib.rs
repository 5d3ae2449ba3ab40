//! Results as tables of typed columns, for files and for data frames.
//!
//! Purpose: whatever leaves Consort as a data set is a [`Table`]; a [`Sink`] writes tables of one
//! shape into one file, CSV always, Arrow and Parquet with the features `arrow` and `parquet`.
//! Usage: build a table with [`Table::text`], [`Table::count`] and [`Table::number`]; write it with
//! [`write()`], or part by part with a [`Sink`]. Pitfall: a column's unit is metadata in Arrow and
//! Parquet and is not in CSV, so units belong into names, or into a column of their own.

#[cfg(feature = "arrow")]
pub mod columnar;
mod error;
mod kind;
mod read;
mod sink;
mod table;

pub use error::TableError;
pub use kind::{Kind, names_table};
pub use read::{Shape, read_csv};
pub use sink::{Sink, write};
pub use table::{Column, Table, Values};
