//! X3: which conclusions hold when what the descriptions say is 30 percent off.
//!
//! Keys. Table `headlines`: rows are the conclusions, for example `workover-throughput`; columns
//! `ratio`, `verdict`, `parameters`, `hold`, `fail`, `joint_percent`, `joint_low_percent`,
//! `joint_high_percent`, `joint_samples`, `joint_p5`, `joint_median`, `joint_p95`. A table and a
//! figure per conclusion, of its key: rows are parameters, for example `machine.llc.size_kib`,
//! `programs.*.data_mpki`, `quantum`; columns `swing`, `low`, `high`, `low_verdict`,
//! `high_verdict`, `low_factor`, `high_factor`.

use super::sensitivity;
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct X3;

static INFO: StudyInfo = StudyInfo {
    id: "X3",
    title: "Which conclusions depend on what the descriptions say",
    source: "Consort; Latin hypercube: McKay, Beckman, Conover, Technometrics 21(2), 1979; score \
             interval: Wilson, JASA 22, 1927",
    section: "sensitivity to parameters of machines and programs",
    original: "No source has this. Each of its conclusions stands on one machine as it was.",
    differs: "Every number of the descriptions of machine and programs, and the quantum, 30 percent \
              down and up: one at a time (a kind of number in all programs at once), and all at \
              once in a Latin hypercube. Left out by rule: counts and nesting, numbers of nodes, \
              line and page sizes, shares relative to others of their kind, and what is 0. Whole \
              numbers are rounded; shares of a mix keep their sum; what would not be valid goes as \
              far as it can. A program's work is measured anew in every trial, so it takes the \
              same time alone. Trials have the seeds of the trial with nothing varied. Models and \
              options of policies stay as they are.",
    default_seed: 31,
    full_seconds_hint: 600,
};

impl Study for X3 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        sensitivity::run(context)
    }
}
