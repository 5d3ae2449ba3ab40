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
              far as it can. Workloads follow a rule each, named in the conclusion or in the \
              study that they are of; two that had been picked after looking at ratios were \
              replaced before this was run in full. A program's work is measured anew in every \
              trial, so it takes the same time alone. Trials have the seeds of the trial with \
              nothing varied. Models and options of policies stay as they are.",
    default_seed: 31,
    full_seconds_hint: 300,
};

impl Study for X3 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn mechanism(&self) -> &'static [&'static str] {
        &MECHANISM
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        sensitivity::run(context)
    }
}

const MECHANISM: [&str; 2] = [
    "Round robin on one large core gains by evenness: linux moves nobody, so that three programs \
     stay on small cores. How much that is follows from how much faster the large core is, which is why the \
     two frequencies and the parallelism of the programs' instructions have the largest swings.",
    "workover takes unlike threads together; copies of a program share their text, so unlike \
     neighbours cost L1I and branch predictor, and the FPU, which is what they are put together \
     for, is far from full. No number within 30 percent makes it scarce, so it loses a little in \
     every sample and is more even in most.",
];
