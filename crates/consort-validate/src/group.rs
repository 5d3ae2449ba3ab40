//! Groups of checks: input, output, and what is told of each.

use super::check::Check;
use super::data::Data;
use super::error::ValidateError;
use super::reference_summary::ReferenceSummary;
use consort_experiment::Context;
use consort_report::{Figure, Table};

/// Input of a group.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The published figures.
    pub data: &'a Data,
    /// Seed, scale and workers.
    pub context: &'a Context<'a>,
}

/// Output of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupOutput {
    /// The checks.
    pub checks: Vec<Check>,
    /// Tables behind them.
    pub tables: Vec<Table>,
    /// Facts that a reader must know.
    pub notes: Vec<String>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// The fast engine beside the reference.
    pub reference: Option<ReferenceSummary>,
}

/// Checks that are one kind of evidence.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Name, for `--group`.
    pub name: &'static str,
    /// Kind of evidence that it is, in a sentence.
    pub about: &'static str,
    /// True where a disagreement is a failure: the checks are laws.
    pub is_law: bool,
    /// True where it is run only when it is named, as it takes minutes.
    pub is_long: bool,
    pub(super) run: fn(&Inputs<'_>) -> Result<GroupOutput, ValidateError>,
}

impl Group {
    pub(super) fn run(&self, inputs: &Inputs<'_>) -> Result<GroupOutput, ValidateError> {
        (self.run)(inputs)
    }
}
