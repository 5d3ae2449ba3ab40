//! A study file at work: experiments give frames, and the views of the file are taken of them.

use super::analyses::{SIMULATE, find_named};
use super::file::{NoteSpec, StudyFile, TableSpec};
use super::frames::Frames;
use super::{Study, StudyError, StudyInfo, StudyOutput, check, figures, notes, tables};
use crate::frame::Frame;
use crate::simulate::{self, DescriptionSource, ExperimentSpec, part_error};
use crate::studies;
use consort_data::ReportTable;
use consort_experiment::{ExperimentContext, Scale};
use consort_sim::describe::DescribeError;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A study that a file describes.
pub struct FileStudy {
    info: StudyInfo,
    file: StudyFile,
    ground: Arc<dyn DescriptionSource + Send>,
    /// Prefix of its experiments' names: machines of a user may have the names of presets.
    owner: String,
    /// Hash of a user's file and of the machines and programs that it names; empty for files that
    /// come with Consort.
    version: String,
}

impl FileStudy {
    /// Reads a study; `name` is the file's in messages, machines and programs are the ground's.
    ///
    /// # Errors
    /// The first thing that is wrong, with file, line and key; of machines and workloads the line
    /// is that of the first place where the text has them.
    pub fn parse(
        name: &str,
        text: &str,
        ground: Arc<dyn DescriptionSource + Send>,
    ) -> Result<Self, DescribeError> {
        let mut study = Self::parse_built_in(name, text, ground)?;
        study.owner = name.to_owned();
        let described = check::check_descriptions(name, text, &study.file, &*study.ground)?;
        let mut hash = DefaultHasher::new();
        (text, described).hash(&mut hash);
        study.version = format!("{:016x}", hash.finish());
        Ok(study)
    }

    /// Reads a study without a look at machines and programs, of which a test makes sure.
    pub(crate) fn parse_built_in(
        name: &str,
        text: &str,
        ground: Arc<dyn DescriptionSource + Send>,
    ) -> Result<Self, DescribeError> {
        let file = StudyFile::parse(name, text)?;
        let info = StudyInfo {
            id: file.id.clone(),
            title: file.title.clone(),
            source: file.source.clone(),
            section: file.section.clone(),
            original: file.original.clone(),
            differs: file.differs.clone(),
            default_seed: file.seed,
            full_seconds_hint: file.full_seconds,
        };
        Ok(Self {
            info,
            file,
            ground,
            owner: String::new(),
            version: String::new(),
        })
    }

    /// Runs the file's experiments, or takes what another study has made of the same.
    fn run_experiments(&self, context: &ExperimentContext<'_>) -> Result<Frames, StudyError> {
        let mut frames = Frames {
            names: self.file.names.clone(),
            ..Frames::default()
        };
        let shared = self.file.shared.iter().map(|(name, of)| {
            let known = studies::experiment(of);
            let unknown = || StudyError::part(of.as_str(), "there is no such shared experiment");
            Ok((name, known.ok_or_else(unknown)?))
        });
        let shared: Vec<(&String, ExperimentSpec)> = shared.collect::<Result<_, StudyError>>()?;
        let own = self.file.experiments.iter();
        let own = own.map(|(name, spec)| (name, spec.clone()));
        for (name, spec) in shared.into_iter().chain(own) {
            // Experiments that are described alike are one.
            let what = serde_json::to_string(&spec).map_err(part_error(name))?;
            let what = format!("{}: {what}", self.owner);
            let frame = context.get_or_compute(&what, || self.run_experiment(context, &spec))?;
            frames.frames.insert(name.clone(), frame);
        }
        Ok(frames)
    }

    fn run_experiment(
        &self,
        context: &ExperimentContext<'_>,
        spec: &ExperimentSpec,
    ) -> Result<Frame, StudyError> {
        let kind = spec.kind.as_deref().unwrap_or(SIMULATE);
        match find_named(studies::ANALYSES.experiments, kind) {
            Some(experiment) => experiment(context, spec),
            None => simulate::run_experiment(context, spec, &*self.ground),
        }
    }

    fn table(&self, spec: &TableSpec, frames: &Frames) -> Result<ReportTable, StudyError> {
        let analysis = spec.analysis.as_deref().unwrap_or_default();
        match find_named(studies::ANALYSES.tables, analysis) {
            Some(table) => table(spec, frames),
            None => tables::table(frames, spec),
        }
    }

    fn notes(&self, frames: &Frames, scale: Scale) -> Vec<String> {
        let of = |spec: &NoteSpec| {
            let analysis = spec.analysis.as_deref().unwrap_or_default();
            match find_named(studies::ANALYSES.notes, analysis) {
                Some(notes) => notes(frames),
                None => notes::notes(frames, spec),
            }
        };
        let said = |spec: &&NoteSpec| !spec.quick_only || scale == Scale::Quick;
        self.file.notes.iter().filter(said).flat_map(of).collect()
    }

    fn view_experiments(&self, context: &ExperimentContext<'_>) -> Result<StudyOutput, StudyError> {
        let frames = self.run_experiments(context)?;
        let mut shown = vec![tables::headline(&frames, &self.file.headline)?];
        for spec in &self.file.tables {
            shown.push(self.table(spec, &frames)?);
        }
        let mut drawn = Vec::new();
        for spec in &self.file.figures {
            // At the quick scale there may be none of the cases that a figure shows.
            let some = !spec.optional || figures::has_values(&frames, spec);
            if some && !frames.groups(spec.looped()).is_empty() {
                drawn.push(figures::figure(&frames, spec)?);
            }
        }
        Ok(StudyOutput {
            tables: shown,
            figures: drawn,
            notes: self.notes(&frames, context.scale()),
            runs: frames.most_runs(),
        })
    }
}

impl Study for FileStudy {
    fn info(&self) -> &StudyInfo {
        &self.info
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn mechanism(&self) -> &[String] {
        &self.file.mechanism
    }

    fn run(&self, context: &ExperimentContext<'_>) -> Result<StudyOutput, StudyError> {
        let whole = self.file.analysis.as_deref();
        match whole.and_then(|name| find_named(studies::ANALYSES.studies, name)) {
            Some(analysis) => analysis(context, &self.file),
            None => self.view_experiments(context),
        }
    }
}
