//! Cells and bars from values.

use crate::report::{Bar, Cell};
use consort_core::stats::{Interval, RatioInterval};

/// Mean and interval.
pub(in crate::studies) fn interval(values: &[f64]) -> Cell {
    Interval::of(values).map_or_else(|| Cell::missing("no runs"), Cell::from)
}

/// Geometric mean of ratios and its interval.
pub(in crate::studies) fn ratios(values: &[f64]) -> Cell {
    RatioInterval::of(values).map_or_else(|| Cell::missing("no runs"), Cell::from)
}

/// Geometric mean of the ratios of values, one by one.
pub(in crate::studies) fn ratio(ours: &[f64], theirs: &[f64]) -> Cell {
    let pairs = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs);
    ratios(&pairs.collect::<Vec<_>>())
}

/// A number where there is one.
pub(in crate::studies) fn known(value: Option<f64>, why_not: &str) -> Cell {
    value.map_or_else(|| Cell::missing(why_not), Cell::from)
}

/// A bar as high as a cell's value.
pub(in crate::studies) fn bar(cell: &Cell) -> Option<Bar> {
    Some(Bar {
        value: cell.value()?,
        ci95: cell.ci95(),
    })
}
