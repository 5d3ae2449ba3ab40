//! Cells from values.

use crate::frame::ratios;
use consort_report::Cell;

/// Geometric mean of the ratios of values, one by one.
pub(in crate::studies) fn ratio(ours: &[f64], theirs: &[f64]) -> Cell {
    let pairs = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
    ratios(&pairs.collect::<Vec<_>>())
}

/// A number where there is one.
pub(in crate::studies) fn known(value: Option<f64>, why_not: &str) -> Cell {
    value.map_or_else(|| Cell::missing(why_not), Cell::from)
}
