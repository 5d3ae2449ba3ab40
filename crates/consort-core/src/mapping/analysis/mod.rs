//! Analysis of resources that matter, from the use that programs made of them under each mapping.
//!
//! Source: Wang et al., "Performance Analysis of Thread Mappings with a Holistic View of the
//! Hardware Resources" (ISPASS 2012), sections IV to VI.
//!
//! Usage: fill a [`MappingTable`] with one [`MappingRow`] per program, co-runners and mapping; then
//! [`key_resources`], [`importance()`], [`memory_correlation`], and [`attribute`] for any two rows.
//! [`characteristics`](AloneCharacteristics) come from runs alone. Pitfalls: all amounts are per run of
//! the program, so that mappings under which a program ran more often compare; what is not counted
//! is absent, never 0, and questions that need it are not answered.

mod attribution;
mod characteristics;
mod importance;
mod key;
mod l2mp;
mod resource;

pub use attribution::{Attribution, attribute};
pub use characteristics::{AloneCharacteristics, AloneCounts};
pub use importance::{Importance, importance};
pub use key::{KeyResource, ResourceFinding, Thresholds, key_resources};
pub use l2mp::{MemoryPath, correlation, memory_correlation};
pub use resource::{Amount, SharedResource};

use serde::Serialize;
use std::collections::BTreeMap;

/// Use that one program made of the hardware under one mapping, per run of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Time of a run, s: the source's `Exec_Time`.
    pub time_s: f64,
    /// Cycles that its threads were on PUs, all together: `Exec_Cycles`. Where none are counted,
    /// CPU time in ns may stand for them, as long as the frequency is the same under all mappings.
    pub cycles: Option<f64>,
    /// Share of the cores' time that its threads were on them, 0 to 1: `Utilisation`.
    pub utilisation: Option<f64>,
    /// Counts of resources.
    pub amounts: BTreeMap<SharedResource, Amount>,
    /// Cost of the L2, its prefetchers and the memory path as one.
    pub memory: Option<MemoryPath>,
}

/// One program under one mapping.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MappingRow {
    /// The mapping.
    pub mapping: String,
    /// The program.
    pub program: String,
    /// Program that ran beside it.
    pub co_runner: String,
    /// Use that it made.
    pub usage: Usage,
}

/// Programs under mappings.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MappingTable {
    /// One row per program, co-runner and mapping.
    pub rows: Vec<MappingRow>,
}

/// A program with its co-runner.
pub type CoRunnerPair = (String, String);

impl MappingTable {
    /// The rows of each program and co-runner, in order of names.
    pub fn pairs(&self) -> BTreeMap<CoRunnerPair, Vec<&MappingRow>> {
        let mut pairs: BTreeMap<CoRunnerPair, Vec<&MappingRow>> = BTreeMap::new();
        for row in &self.rows {
            let pair = (row.program.clone(), row.co_runner.clone());
            pairs.entry(pair).or_default().push(row);
        }
        pairs
    }
}

/// Excess of the largest value over the smallest, relative to the smallest; 0 where all are 0.
fn relative_range(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let (low, high) = (
        values.clone().fold(f64::INFINITY, f64::min),
        values.fold(0.0, f64::max),
    );
    if high <= 0.0 { 0.0 } else { high / low - 1.0 }
}
