//! Analysis that comes with Consort, as study files name it.

use super::file::{StudyFile, TableSpec};
use super::frames::Frames;
use super::{StudyError, StudyOutput};
use crate::frame::Frame;
use crate::simulate::ExperimentSpec;
use consort_data::ReportTable;
use consort_experiment::ExperimentContext;

/// Maker of the frame of an experiment that is more than its cases under its policies.
pub(crate) type Experimenter =
    fn(&ExperimentContext<'_>, &ExperimentSpec) -> Result<Frame, StudyError>;
/// Maker of a table that is more than a view.
pub(crate) type TableMaker = fn(&TableSpec, &Frames) -> Result<ReportTable, StudyError>;
/// Writer of notes that are more than texts with phrases.
pub(crate) type NoteMaker = fn(&Frames) -> Vec<String>;
/// A study that is analysis as a whole.
pub(crate) type StudyMaker =
    fn(&ExperimentContext<'_>, &StudyFile) -> Result<StudyOutput, StudyError>;

/// Analysis that comes with Consort, by the names that study files have for it.
pub(crate) struct Analyses {
    pub(crate) experiments: &'static [(&'static str, Experimenter)],
    pub(crate) tables: &'static [(&'static str, TableMaker)],
    pub(crate) notes: &'static [(&'static str, NoteMaker)],
    pub(crate) studies: &'static [(&'static str, StudyMaker)],
}

/// Entry of a list, by its name.
pub(crate) fn find_named<T: Copy>(all: &[(&str, T)], name: &str) -> Option<T> {
    all.iter()
        .find(|(known, _)| *known == name)
        .map(|(_, what)| *what)
}

/// The experiment that an entry of the file names as its kind.
pub(crate) const SIMULATE: &str = "simulate";
