//! Validation: simulated figures next to published or measured ones.
//!
//! [`select`] [groups](GROUPS) by name, [`run`] them with the [`PublishedData`], then print or
//! serialize the [`Validation`]. Only the group `conservation` can fail, because its checks are
//! laws; any other disagreement is a finding and stays listed. Never change the parameters of
//! machines or programs to remove one.

mod check;
mod conservation;
mod consistency;
mod data;
mod independent;
mod placement;
mod reference;
mod simulated;
mod smt;

pub use check::{CheckErrorKind, PublishedFigure, ValidationCheck, checks_to_long_table};
pub use data::{PublishedData, ValidateError};
pub use reference::{ReferenceSummary, VarianceShares};

use check::{CheckTemplate, Tolerance};
use consort_data::{Figure, ReportTable};
use consort_experiment::ExperimentContext;
use consort_experiment::bench::{ACMP, POWER8, SimulationBench};
use serde::Serialize;
use std::path::Path;
use thiserror::Error;

/// Input of a group.
#[derive(Clone, Copy)]
pub struct GroupInputs<'a> {
    /// The published figures.
    pub data: &'a PublishedData,
    /// Seed, scale and workers. Every group but `speed` depends on seed and scale alone.
    pub context: &'a ExperimentContext<'a>,
    /// Folder with traces that the group `reference` runs; the shipped ones if `None`.
    pub traces: Option<&'a Path>,
}

impl GroupInputs<'_> {
    /// Results of independent jobs on the context's workers, in the order of the jobs.
    fn map<T: Sync, R: Send>(
        &self,
        jobs: &[T],
        work: impl Fn(&T) -> Result<R, ValidateError> + Sync,
    ) -> Result<Vec<R>, ValidateError> {
        self.context.map(jobs, work)?.into_iter().collect()
    }
}

type GroupResult = Result<GroupOutput, ValidateError>;

/// Checks of a part of a group.
type CheckResult = Result<Vec<ValidationCheck>, ValidateError>;

#[derive(Default)]
struct GroupOutput {
    checks: Vec<ValidationCheck>,
    tables: Vec<ReportTable>,
    notes: Vec<String>,
    figures: Vec<Figure>,
    reference: Option<ReferenceSummary>,
}

/// Checks that are one kind of evidence.
#[derive(Clone, Copy, Debug)]
pub struct CheckGroup {
    /// Name, for `--group`.
    pub name: &'static str,
    /// Kind of evidence, in a sentence.
    pub about: &'static str,
    /// True if a disagreement is a failure, because the checks are laws.
    pub is_law: bool,
    /// True if the group is run only when it is named, because it takes minutes.
    pub is_long: bool,
    run: fn(&GroupInputs<'_>) -> GroupResult,
}

const fn group(
    name: &'static str,
    about: &'static str,
    run: fn(&GroupInputs<'_>) -> GroupResult,
) -> CheckGroup {
    CheckGroup {
        name,
        about,
        is_law: false,
        is_long: false,
        run,
    }
}

/// All groups, in the order in which they are printed.
pub const GROUPS: &[CheckGroup] = &[
    group(
        consistency::NAME,
        "Figures that went into the programs, found again in the result: \
         shows that profiles and solver fit together, proves nothing more.",
        consistency::run,
    ),
    group(
        independent::NAME,
        "Figures from other publications that went into no parameter.",
        independent::run,
    ),
    CheckGroup {
        is_law: true,
        ..group(
            conservation::NAME,
            "Laws, over random workloads on every machine; one that does not hold is an error.",
            conservation::run,
        )
    },
    group(
        placement::NAME,
        "Where the model of the operating system puts threads, compared with a real kernel.",
        placement::run,
    ),
    group(
        smt::NAME,
        "Slowdowns on one SMT core next to measured ones, which judge mechanisms and go into nothing.",
        smt::run,
    ),
    CheckGroup {
        is_long: true,
        ..group(
            reference::NAME,
            "The fast engine compared with one that executes the instructions of traced programs.",
            reference::run,
        )
    },
    group(
        SPEED.group,
        "Simulated instructions per second of this host, measured now.",
        measure_speed,
    ),
];

/// There is no such group.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown group '{name}'; {hint}")]
pub struct UnknownGroup {
    /// The unknown name.
    pub name: String,
    /// The nearest name, or all of them.
    pub hint: String,
}

/// The groups of these names, in the registry's order; if there are no names, all that are not
/// long.
///
/// # Errors
/// A name that no group has.
pub fn select(names: &[String]) -> Result<Vec<&'static CheckGroup>, UnknownGroup> {
    let known = || GROUPS.iter().map(|group| group.name);
    for name in names {
        if !known().any(|group| group == name) {
            return Err(UnknownGroup {
                name: name.clone(),
                hint: consort_core::hint(name, known()),
            });
        }
    }
    let is_selected = |group: &&CheckGroup| match names {
        [] => !group.is_long,
        _ => names.iter().any(|name| name == group.name),
    };
    Ok(GROUPS.iter().filter(is_selected).collect())
}

/// Outcome of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckGroupSummary {
    /// Name of the group.
    pub group: &'static str,
    /// See [`CheckGroup::about`].
    pub about: &'static str,
    /// Number of checks.
    pub checks: usize,
    /// Number of checks that agree.
    pub agree: usize,
    /// Number of checks that do not.
    pub disagree: usize,
    /// See [`CheckGroup::is_law`].
    pub is_law: bool,
}

/// A check that does not agree, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Disagreement {
    /// Name of the group.
    pub group: &'static str,
    /// Id of the check.
    pub id: String,
    /// The disagreement and its size, in a sentence.
    pub text: String,
}

/// A fact that a reader of a group must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupNote {
    /// Name of the group.
    pub group: &'static str,
    /// The fact.
    pub text: String,
}

/// Results of all groups that were run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Validation {
    /// Every check.
    pub checks: Vec<ValidationCheck>,
    /// The checks that do not agree, in the same order.
    pub disagreements: Vec<Disagreement>,
    /// One line per group.
    pub summary: Vec<CheckGroupSummary>,
    /// Tables behind the checks.
    pub tables: Vec<ReportTable>,
    /// Facts that a reader must know, by group.
    pub notes: Vec<GroupNote>,
    /// Figures; not part of the JSON document.
    #[serde(skip)]
    pub figures: Vec<Figure>,
    /// The fast engine compared with the reference; `None` if that group was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceSummary>,
}

impl Validation {
    /// True if no check of a group of laws disagrees.
    pub fn laws_hold(&self) -> bool {
        let broken = |group: &CheckGroupSummary| group.is_law && group.disagree > 0;
        !self.summary.iter().any(broken)
    }
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
        let output = (group.run)(inputs)?;
        let checks = output.checks.len();
        let before = validation.disagreements.len();
        for check in output.checks {
            if !check.agrees {
                validation.disagreements.push(Disagreement {
                    group: check.group,
                    id: check.id.clone(),
                    text: check.sentence(),
                });
            }
            validation.checks.push(check);
        }
        let disagree = validation.disagreements.len() - before;
        validation.summary.push(CheckGroupSummary {
            group: group.name,
            about: group.about,
            checks,
            agree: checks - disagree,
            disagree,
            is_law: group.is_law,
        });
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

const SPEED: CheckTemplate<'static> = CheckTemplate {
    group: "speed",
    source: "aim of the project; instruction-level simulators reach 1e5 to 1e7, analytic ones 1e11",
    unit: "instr/host s",
    tolerance: Tolerance::absolute(0.0),
};

/// Runs of each scenario; the median counts, because other processes only slow a run down.
const SPEED_RUNS: usize = 5;

/// Simulated instructions per second of host time. This is the one group whose figures depend on
/// the host, its load and the build.
fn measure_speed(_: &GroupInputs<'_>) -> GroupResult {
    let check = |scenario: SimulationBench| -> Result<ValidationCheck, ValidateError> {
        let mut runs = scenario.run_times(SPEED_RUNS)?;
        runs.sort_by(|a, b| a.speed().total_cmp(&b.speed()));
        let median = runs[SPEED_RUNS / 2];
        let note = format!(
            "median of {SPEED_RUNS} runs of {} quanta: {:.2e} instructions in {:.3} s",
            median.quanta, median.instructions, median.seconds
        );
        let aim = PublishedFigure::AtLeast(scenario.target());
        let check = SPEED.check(scenario.name(), scenario.title(), aim, median.speed());
        Ok(check.with_note(note))
    };
    let build = if cfg!(debug_assertions) {
        "a build that was not optimised for speed"
    } else {
        "an optimised build"
    };
    Ok(GroupOutput {
        checks: [POWER8, ACMP]
            .into_iter()
            .map(check)
            .collect::<Result<_, _>>()?,
        notes: vec![format!(
            "Measured now, in processor time of one thread of this host, by {build}. \
             `consort bench` repeats the same runs more often and gives the spread."
        )],
        ..GroupOutput::default()
    })
}

#[cfg(test)]
mod tests;
