//! Studies and their reports.
//!
//! [`mod@file`] is a study as data. [`FileStudy`] runs one: experiments give frames, and headline,
//! tables, figures and notes are views of them.

mod check;
mod figures;
pub mod file;
mod frames;
mod notes;
mod run;
mod tables;
pub(crate) mod template;

pub(crate) use frames::{Analyses, Frames, TemplateWords};
pub use run::FileStudy;

use consort_data::long::{LongRows, RowOwner};
use consort_data::{Figure, FigureError, ReportTable, ReportTableError, Table};
use consort_experiment::{ExperimentContext, JobsError, Scale};
use file::OutcomeSpec;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One experiment, usually a published one that is run again.
///
/// A study may use nothing but its [`ExperimentContext`]: same seed and scale, same
/// output, whatever the number of workers.
pub trait Study: Send + Sync {
    /// Description of the study.
    fn info(&self) -> &StudyInfo;

    /// Runs it.
    ///
    /// # Errors
    /// A study that cannot be carried out; the text names the part that failed.
    fn run(&self, context: &ExperimentContext<'_>) -> Result<StudyOutput, StudyError>;

    /// Text that changes with the content of a study that does not come with Consort; a result of
    /// another version is computed again.
    fn version(&self) -> &str {
        ""
    }

    /// Explanations of the numbers, written by people who read the full scale with the study's own
    /// seed; reports say that no run computes them.
    fn mechanism(&self) -> &[String] {
        &[]
    }

    /// Values that stand for published figures.
    fn published(&self) -> &[OutcomeSpec] {
        &[]
    }
}

/// Description of a study.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StudyInfo {
    /// Stable id: letters, digits, `-`, `_`; for example `W3`.
    pub id: String,
    /// Title for people.
    pub title: String,
    /// The published work.
    pub source: String,
    /// Section, figure or table of the source.
    pub section: String,
    /// Setup of the source: machine, workloads, policies, repetitions.
    pub original: String,
    /// Differences from the source.
    pub differs: String,
    /// Seed, unless the user gives another.
    pub default_seed: u64,
    /// About how long the full scale takes on two cores, in seconds.
    pub full_seconds_hint: u32,
}

/// Results of a study.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyOutput {
    /// Tables, the main one first. Keys are unique.
    pub tables: Vec<ReportTable>,
    /// Figures, shaped like the source's. Keys are unique.
    pub figures: Vec<Figure>,
    /// Findings, mechanisms and limits that a reader must know.
    pub notes: Vec<String>,
    /// Runs of each workload and policy behind the numbers.
    pub runs: usize,
}

/// A finished study with its results. Its JSON is that of `consort reproduce --format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StudyReport {
    /// The study's id.
    pub study: String,
    /// Title for people.
    pub title: String,
    /// The published work.
    pub source: String,
    /// Section, figure or table of the source.
    pub section: String,
    /// Setup of the source.
    pub original: String,
    /// Differences from the source.
    pub differs: String,
    /// The seed.
    pub seed: u64,
    /// Amount of work that was done.
    pub scale: Scale,
    /// Host time that it took, in seconds. This, and tables that a study marks as measured on the
    /// host, are not the same on every host.
    pub seconds: f64,
    /// Answer of the whole study in a sentence, for the head of its page; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Explanations of the numbers; see [`Study::mechanism`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mechanism: Vec<String>,
    /// Tables, figures and notes.
    #[serde(flatten)]
    pub output: StudyOutput,
}

impl StudyReport {
    /// Sentence above a report's mechanism.
    pub const BY_HAND: &str = "Read by people off the full scale with the study's own seed, not \
        worked out from these runs.";

    /// Report of a study's results.
    pub(crate) fn new(
        study: &dyn Study,
        context: &ExperimentContext<'_>,
        output: StudyOutput,
    ) -> Self {
        let info = study.info();
        Self {
            study: info.id.clone(),
            title: info.title.clone(),
            source: info.source.clone(),
            section: info.section.clone(),
            original: info.original.clone(),
            differs: info.differs.clone(),
            seed: context.seed(),
            scale: context.scale(),
            seconds: 0.0,
            answer: None,
            mechanism: study.mechanism().to_vec(),
            output,
        }
    }
}

/// Every number of a study in the long format: the case is `STUDY:TABLE:ROW`, the measure the
/// column, and half widths of intervals are measures that end in `_ci95`.
pub fn study_to_long_table(report: &StudyReport) -> Table {
    let mut rows = LongRows::default();
    for table in &report.output.tables {
        for (row, column, cell) in table.cells() {
            let case = format!("{}:{}:{}", report.study, table.key(), row.key);
            let owner = RowOwner {
                case: &case,
                seed: Some(report.seed),
                ..RowOwner::default()
            };
            let unit = column.unit.as_deref();
            rows.push_if_some(owner, &column.key, cell.value(), unit);
            rows.push_if_some(owner, &format!("{}_ci95", column.key), cell.ci95(), unit);
        }
    }
    rows.table()
}

/// Reason why a study could not be carried out.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A table is not one.
    #[error(transparent)]
    Table(#[from] ReportTableError),
    /// A figure is not one.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// The first table is not the headline.
    #[error("the first table of a study needs the key 'headline'")]
    NoHeadline,
    /// Two tables or two figures have one key.
    #[error("two {what} have the key '{key}'; each needs its own")]
    Twice {
        /// Tables or figures.
        what: &'static str,
        /// The key.
        key: String,
    },
    /// Not all jobs were done.
    #[error(transparent)]
    Jobs(#[from] JobsError),
    /// Something that the study runs on failed.
    #[error("{part}: {cause}")]
    Part {
        /// Part of the study.
        part: String,
        /// Error of that part.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl StudyError {
    /// A failure of one part of a study, which is named.
    pub fn part(
        part: impl Into<String>,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Part {
            part: part.into(),
            cause: cause.into(),
        }
    }
}
