//! Tornado charts as data.

use super::Axis;
use super::check::{check_any, check_finite, check_linear};
use serde::{Deserialize, Serialize};

/// Effects on a value of one parameter at a time: each bar reaches from the value at the low end of
/// the parameter to that at its high end, usually with the longest bar at the top.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tornado {
    /// The axis of values; linear.
    pub value: Axis,
    /// The value if no parameter is varied; bars begin here.
    pub baseline: f64,
    /// Value at which the conclusion reverses; drawn as a line.
    pub threshold: Option<f64>,
    /// Names of the two ends in the legend: low, high.
    pub ends: [String; 2],
    /// The bars, top to bottom.
    pub rows: Vec<TornadoRow>,
}

/// One parameter of a tornado chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TornadoRow {
    /// Name of the parameter.
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
