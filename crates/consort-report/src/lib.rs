//! Tables and figures of results, and the forms in which they are given out.
//!
//! [`ReportTable`]s and [`Figure`]s are data: rows of [`Cell`]s, and a [`Plot`] of one of five shapes.
//! [`write_csv`], [`draw`] and [`html`] turn them into CSV, SVG and HTML, [`write_tables_and_figures`] into
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
pub use consort_output::write_atomically;
pub use csv::{CsvError, write_csv};
pub use figure::{
    Axis, Bar, BarChart, BarSeries, Figure, FigureError, FigurePoint, HeatMap, LineChart,
    MAX_SERIES, Plot, PointSeries, ScatterChart, Tornado, TornadoRow,
};
pub use headline::{HEADLINE, HeadlineTable, percent_above_one};
pub use html::figures_page;
pub use svg::{SvgError, draw};
pub use table::{ReportColumn, ReportRow, ReportTable, ReportTableError};
pub use write::{FileContent, WriteError, file_contents, write_files, write_tables_and_figures};
