//! Published figures beside ours.
//!
//! A reference file is CSV with the columns `study`, `row`, `column`, `value`;
//! further columns, for example a note, are left alone, and lines that start
//! with `#` are comments. A `row` is a row's key, or `TABLE:ROW` where several
//! tables of the study have that row; keys match in any case.

mod compare;
mod file;

pub use compare::{ComparedFigure, ReferenceComparison, UnmatchedFigure, compare};
pub use file::{ReferenceFileError, ReferenceLine, parse, read};
