//! What a study is: its file, and what is made of it.
//!
//! [`mod@file`] is a study as data; [`FileStudy`] runs one: experiments give frames, and headline,
//! tables, figures and notes are views of them.

mod check;
mod figures;
pub mod file;
mod frames;
mod notes;
mod run;
mod tables;
pub(crate) mod template;

pub(crate) use figures::bar;
pub(crate) use frames::Frames;
pub(crate) use run::Analyses;
pub use run::FileStudy;

use crate::context::Context;
use crate::report::{Figure, FigureError, Table, TableError};
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// One experiment, usually a published one that is run again.
///
/// A study may use nothing but its [`Context`]: same seed and scale, same
/// output, whatever the number of workers.
pub trait Study: Send + Sync {
    /// What it is about.
    fn info(&self) -> &StudyInfo;

    /// Runs it.
    ///
    /// # Errors
    /// When the study cannot be carried out; the text says which part.
    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError>;

    /// Why the numbers are as they are, written by people who looked at the full scale with the
    /// study's own seed. Nothing works this out from the runs at hand, and reports say so.
    fn mechanism(&self) -> &[String] {
        &[]
    }
}

/// What a study is about.
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
    /// What the source did: machine, workloads, policies, repetitions.
    pub original: String,
    /// What is done instead where it must differ.
    pub differs: String,
    /// Seed unless another is asked for.
    pub default_seed: u64,
    /// About how long the full scale takes on two cores, in seconds.
    pub full_seconds_hint: u32,
}

/// How much of a study to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// The shape of the result, in seconds.
    Quick,
    /// As many runs as the source had.
    Full,
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quick => "quick",
            Self::Full => "full",
        })
    }
}

/// What a study gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StudyOutput {
    /// Tables, the main one first. Keys are unique.
    pub tables: Vec<Table>,
    /// Figures, shaped like the source's. Keys are unique.
    pub figures: Vec<Figure>,
    /// What a reader must know: findings, mechanisms, limits.
    pub notes: Vec<String>,
    /// Runs of each workload and policy that the numbers stand on.
    pub runs: usize,
}

/// A finished study: what it is about and what it gave. Its JSON is that of
/// `consort reproduce --format json`.
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
    /// What the source did.
    pub original: String,
    /// What is done instead where it must differ.
    pub differs: String,
    /// The seed.
    pub seed: u64,
    /// How much of it was run.
    pub scale: Scale,
    /// Host time that it took, in seconds. This, and tables that a study marks as measured on the
    /// host, are not the same on every host.
    pub seconds: f64,
    /// Why the numbers are as they are; see [`Study::mechanism`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mechanism: Vec<String>,
    /// What it gave.
    #[serde(flatten)]
    pub output: StudyOutput,
}

impl StudyReport {
    /// What is to be said above a report's mechanism.
    pub const BY_HAND: &str = "Read by people off the full scale with the study's own seed, not \
        worked out from these runs.";

    /// What a study gave, under what it is about.
    pub(crate) fn new(study: &dyn Study, context: &Context<'_>, output: StudyOutput) -> Self {
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
            mechanism: study.mechanism().to_vec(),
            output,
        }
    }
}

/// Why a study could not be carried out.
#[derive(Debug, Error)]
pub enum StudyError {
    /// A table is not one.
    #[error(transparent)]
    Table(#[from] TableError),
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
    /// The threads to run on could not be started.
    #[error("cannot start worker threads: {0}")]
    Workers(String),
    /// What the study runs on failed.
    #[error("{part}: {cause}")]
    Part {
        /// Which part of the study.
        part: String,
        /// What happened.
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
