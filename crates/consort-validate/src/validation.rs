//! Running groups, and what they give together.

use super::check::ValidationCheck;
use super::error::ValidateError;
use super::group::{CheckGroup, GroupInputs};
use super::reference_summary::ReferenceSummary;
use consort_data::{Figure, ReportTable};
use serde::Serialize;

/// Outcome of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckGroupSummary {
    /// Its name.
    pub group: &'static str,
    /// Kind of evidence that it is.
    pub about: &'static str,
    /// Checks.
    pub checks: usize,
    /// Those that agree.
    pub agree: usize,
    /// Those that do not.
    pub disagree: usize,
    /// True where a disagreement is a failure.
    pub is_law: bool,
}

/// A check that does not agree, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// Its group.
    pub group: &'static str,
    /// The check's id.
    pub id: String,
    /// The disagreement and its size.
    pub text: String,
}

/// All groups that were run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Validation {
    /// Every check.
    pub checks: Vec<ValidationCheck>,
    /// Those that do not agree, in the same order.
    pub disagreements: Vec<Disagreement>,
    /// One line per group.
    pub summary: Vec<CheckGroupSummary>,
    /// Tables behind the checks.
    pub tables: Vec<ReportTable>,
    /// Facts that a reader must know, by group.
    pub notes: Vec<GroupNote>,
    /// Figures.
    #[serde(skip)]
    pub figures: Vec<Figure>,
    /// The fast engine beside the reference, where that was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceSummary>,
}

/// A fact that a reader of a group must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupNote {
    /// The group.
    pub group: &'static str,
    /// The fact.
    pub text: String,
}

/// Runs groups, one after the other.
///
/// # Errors
/// Broken data, or a simulation that cannot be carried out; never a disagreement.
pub fn run(
    groups: &[&'static CheckGroup],
    inputs: &GroupInputs<'_>,
) -> Result<Validation, ValidateError> {
    let mut validation = Validation::default();
    for group in groups {
        let output = group.run(inputs)?;
        validation
            .summary
            .push(summarize_group(group, &output.checks));
        let disagreeing = output.checks.iter().filter(|check| !check.agrees);
        validation
            .disagreements
            .extend(disagreeing.map(disagreement));
        validation.checks.extend(output.checks);
        validation.tables.extend(output.tables);
        validation.figures.extend(output.figures);
        validation.reference = output.reference.or(validation.reference);
        let notes = output.notes.into_iter().map(|text| GroupNote {
            group: group.name,
            text,
        });
        validation.notes.extend(notes);
    }
    Ok(validation)
}

impl Validation {
    /// Says whether every law holds.
    pub fn laws_hold(&self) -> bool {
        let broken = |group: &CheckGroupSummary| group.is_law && group.disagree > 0;
        !self.summary.iter().any(broken)
    }
}

fn summarize_group(group: &CheckGroup, checks: &[ValidationCheck]) -> CheckGroupSummary {
    let agree = checks.iter().filter(|check| check.agrees).count();
    CheckGroupSummary {
        group: group.name,
        about: group.about,
        checks: checks.len(),
        agree,
        disagree: checks.len() - agree,
        is_law: group.is_law,
    }
}

fn disagreement(check: &ValidationCheck) -> Disagreement {
    Disagreement {
        group: check.group,
        id: check.id.clone(),
        text: check.sentence(),
    }
}
