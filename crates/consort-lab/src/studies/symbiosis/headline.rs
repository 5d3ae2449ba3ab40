//! Headlines of the studies that stand on the grid: one row per policy of the paper and number of
//! cores.

use super::grid::{Grid, POLICIES};
use crate::report::{Cell, Headline, Table};
use crate::study::StudyError;

/// A table of `ROW POLICY, CORES cores` in this unit.
pub(in crate::studies) fn by_cores(
    grid: &Grid,
    policies: &[usize],
    name: impl Fn(&str) -> String,
    unit: Unit,
    cell: impl Fn(&[usize], usize) -> Cell,
) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (key, group) in grid.groups() {
        for &policy in policies {
            let on = match key.as_str() {
                "all" => "all workloads".to_owned(),
                cores => format!("{cores} cores"),
            };
            let row = format!("{}, {on}", name(POLICIES[policy]));
            let cell = cell(&group, policy);
            match unit {
                Unit::Gain => headline.add_gain(&row, cell)?,
                Unit::Ratio => headline.add(&row, "ratio", cell)?,
            }
        }
    }
    Ok(headline.into_table())
}

/// How a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::studies) enum Unit {
    /// As what a ratio is above one, percent.
    Gain,
    /// As it is.
    Ratio,
}
