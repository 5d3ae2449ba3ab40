//! Tables and figures of results, and the forms in which they are given out.
//!
//! [`Table`]s and [`Figure`]s are data: rows of [`Cell`]s, and a [`Plot`] of one of five shapes.
//! [`write_csv`], [`draw`] and [`html`] turn them into CSV, SVG and HTML, [`write_parts`] into
//! files that are whole or not there; the command line prints the tables. Pitfall: nothing here
//! knows of studies or runs; what a number means has to stand in its table's title, its columns
//! and its figure's text.

mod cell;
mod csv;
mod escape;
mod figure;
mod headline;
pub mod html;
mod svg;
mod table;
mod write;

pub use cell::Cell;
pub use consort_output::write_whole;
pub use csv::{CsvError, write_csv};
pub use figure::{
    Axis, Bar, BarSeries, Bars, Figure, FigureError, HeatMap, Lines, MAX_SERIES, Plot, Point,
    PointSeries, Scatter, Tornado, TornadoRow,
};
pub use headline::{HEADLINE, Headline, percent_above_one};
pub use html::sheet;
pub use svg::{SvgError, draw};
pub use table::{Column, Row, Table, TableError};
pub use write::{Part, WriteError, parts, write_files, write_parts};
