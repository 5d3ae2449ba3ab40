//! Consort's results as data and as files.
//!
//! A [`Table`] has typed columns with units; a [`TableSink`] writes tables with the same columns to
//! one CSV file, or with the feature `columnar` to an Arrow or Parquet file. A column's unit is
//! metadata in Arrow and Parquet and is absent from CSV, so units belong into names, or into a column
//! of their own.
//!
//! A [`ReportTable`] has keyed rows of [`Cell`]s (counts, means with intervals, texts, reasons for
//! missing values), and a [`Figure`] has a [`Plot`] of one of six shapes.
//! [`ReportTable::to_csv`], [`draw`] and [`html`] turn them into CSV, SVG and HTML. [`list`] prints rows
//! of any type, and [`long`] collects numbers one per row.
//!
//! [`recording`] holds what managed threads did in each quantum. Every file is written through an
//! [`AtomicFile`], so that it is complete or absent.

mod atomic_file;
mod cell;
#[cfg(feature = "columnar")]
pub mod columnar;
mod csv;
mod escape;
mod figure;
mod grid;
mod headline;
pub mod html;
pub mod list;
pub mod long;
pub mod recording;
mod report_output;
mod report_table;
mod svg;
mod table;
mod table_file;
mod trace;

pub use atomic_file::{AtomicFile, PREFIX, PUBLIC, write_atomically};
pub use cell::Cell;
pub use csv::{escape_field, write_csv};
pub use figure::{
    Axis, Bar, BarChart, BarSeries, Figure, FigureError, FigurePoint, HeatMap, LineChart,
    MAX_SERIES, Plot, PointSeries, RowSpan, ScatterChart, SpanChart, SpanRow, Tornado, TornadoRow,
};
pub use grid::{ColumnHead, lay_out};
pub use headline::{HEADLINE, HeadlineTable, percent_above_one};
pub use html::{figures_page, set_page_foot};
pub use list::List;
pub use report_output::{
    FileContent, WriteError, file_contents, number_field, write_files, write_tables_and_figures,
};
pub use report_table::{ReportColumn, ReportRow, ReportTable, ReportTableError};
pub use svg::{SvgError, draw};
pub use table::{Column, Table, Values};
pub use table_file::{
    TableError, TableFormat, TableShape, TableSink, is_table_path, read_csv, write_table,
};
pub use trace::{TraceTrack, TraceWriter};
