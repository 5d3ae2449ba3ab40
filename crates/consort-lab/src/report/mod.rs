//! What a study produces, and the forms in which it is given out.
//!
//! [`Table`]s and [`Figure`]s are data; `csv`, `svg` and `html` turn them into
//! files, and the command line prints the tables.

mod cell;
mod csv;
mod figure;
mod headline;
mod html;
mod svg;
mod table;
mod write;

pub use cell::Cell;
pub use csv::{CsvError, write_csv};
pub use figure::{
    Axis, Bar, BarSeries, Bars, Figure, FigureError, HeatMap, Lines, MAX_SERIES, Plot, Point,
    PointSeries, Scatter, Tornado, TornadoRow,
};
pub(crate) use headline::percent_above_one;
pub use headline::{HEADLINE, Headline};
pub use html::{INDEX, index, page, sheet};
pub use svg::{SvgError, draw};
pub use table::{Column, Row, Table, TableError};
pub use write::{WriteError, write, write_index, write_parts};
