//! Tornado charts as data.

use super::Axis;
use super::check::{check_any, check_finite, check_linear};
use serde::{Deserialize, Serialize};

/// Effects on a value of one thing at a time: a bar per thing from where it is at its low end to
/// where it is at its high end, the longest usually at the top.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tornado {
    /// The axis of values; linear.
    pub value: Axis,
    /// The value when nothing is varied: bars begin here.
    pub baseline: f64,
    /// Value at which the conclusion turns round; a line of its own.
    pub threshold: Option<f64>,
    /// Names of the two ends in the legend: low, high.
    pub ends: [String; 2],
    /// The bars, top to bottom.
    pub rows: Vec<TornadoRow>,
}

/// One bar, which has two ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TornadoRow {
    /// The thing that is varied.
    pub name: String,
    /// The value at its low and at its high end.
    pub values: [f64; 2],
}

impl Tornado {
    pub(super) fn check(&self) -> Result<(), String> {
        check_linear(&self.value)?;
        check_finite("baseline", [self.baseline])?;
        check_finite("threshold", self.threshold)?;
        for row in &self.rows {
            check_finite(&row.name, row.values)?;
        }
        check_any(self.rows.len())
    }
}
