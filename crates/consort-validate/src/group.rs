//! Groups of checks: input, output, and what is told of each.

use super::check::ValidationCheck;
use super::data::PublishedData;
use super::error::ValidateError;
use super::reference_summary::ReferenceSummary;
use consort_data::{Figure, ReportTable};
use consort_experiment::ExperimentContext;

/// Input of a group.
#[derive(Clone, Copy)]
pub struct GroupInputs<'a> {
    /// The published figures.
    pub data: &'a PublishedData,
    /// Seed, scale and workers.
    pub context: &'a ExperimentContext<'a>,
}

/// Output of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupOutput {
    /// The checks.
    pub checks: Vec<ValidationCheck>,
    /// Tables behind them.
    pub tables: Vec<ReportTable>,
    /// Facts that a reader must know.
    pub notes: Vec<String>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// The fast engine beside the reference.
    pub reference: Option<ReferenceSummary>,
}

/// Checks that are one kind of evidence.
#[derive(Clone, Copy, Debug)]
pub struct CheckGroup {
    /// Name, for `--group`.
    pub name: &'static str,
    /// Kind of evidence that it is, in a sentence.
    pub about: &'static str,
    /// True where a disagreement is a failure: the checks are laws.
    pub is_law: bool,
    /// True where it is run only when it is named, as it takes minutes.
    pub is_long: bool,
    pub(super) run: fn(&GroupInputs<'_>) -> Result<GroupOutput, ValidateError>,
}

impl CheckGroup {
    pub(super) fn run(&self, inputs: &GroupInputs<'_>) -> Result<GroupOutput, ValidateError> {
        (self.run)(inputs)
    }
}
