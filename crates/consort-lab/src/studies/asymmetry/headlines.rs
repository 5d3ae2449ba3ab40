//! Rows of headlines: gains of one policy over another.

use super::case::Value;
use super::grid::Grid;
use crate::report::{Cell, Headline};
use crate::study::StudyError;

/// A row, the policy that it is about, and what that is set against.
pub(in crate::studies) type Gain<'a> = (&'a str, &'a str, &'a str);

/// Adds rows `ROW, WHAT`: what a value of one policy is over another's, percent above one, geometric
/// mean over cases.
pub(in crate::studies) fn gains(
    headline: &mut Headline,
    (grid, cases): (&Grid, &[usize]),
    what: &str,
    value: Value,
    rows: &[Gain<'_>],
) -> Result<(), StudyError> {
    for (row, ours, theirs) in rows {
        let key = format!("{row}, {what}");
        headline.add_gain(&key, over(grid, cases, (ours, theirs), value))?;
    }
    Ok(())
}

/// Geometric mean over cases of a policy's value over another's.
pub(in crate::studies) fn over(
    grid: &Grid,
    cases: &[usize],
    (ours, theirs): (&str, &str),
    value: Value,
) -> Cell {
    match (grid.policy(ours), grid.policy(theirs), cases) {
        (Some(ours), Some(theirs), &[case]) => grid.ratio(case, ours, theirs, value),
        (Some(ours), Some(theirs), _) => grid.ratio_of(cases, ours, theirs, value),
        _ => Cell::missing("not run"),
    }
}
