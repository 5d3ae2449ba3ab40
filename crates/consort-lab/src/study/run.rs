//! A study file at work: experiments give frames, and the views of the file are taken of them.

use super::file::{OutcomeSpec, StudyFile};
use super::frames::{Frames, SIMULATE, find_named};
use super::{Study, StudyError, StudyInfo, StudyOutput, check, figures, notes, tables};
use crate::simulate::{self, DescriptionSource, ExperimentSpec, part_error};
use crate::studies;
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
    /// Reads a study; `name` is the file's in messages, machines and programs are those of
    /// `ground`.
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

    /// Reads a study without a check of its machines and programs; a test checks those of the
    /// files that come with Consort.
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

    /// Runs the file's experiments, or takes the frames that another study has made of the same.
    fn run_experiments(&self, context: &ExperimentContext<'_>) -> Result<Frames, StudyError> {
        let mut frames = Frames {
            names: self.file.names.clone(),
            ..Frames::default()
        };
        let mut experiments: Vec<(&String, ExperimentSpec)> = Vec::new();
        for (name, shared) in &self.file.shared {
            let unknown = || StudyError::part(shared, "there is no such shared experiment");
            let spec = studies::experiment(shared).ok_or_else(unknown)?;
            experiments.push((name, spec));
        }
        let own = self.file.experiments.iter();
        experiments.extend(own.map(|(name, spec)| (name, spec.clone())));
        for (name, spec) in experiments {
            // Experiments that are described alike are one, also in different studies.
            let what = serde_json::to_string(&spec).map_err(part_error(name))?;
            let what = format!("{}: {what}", self.owner);
            let kind = spec.kind.as_deref().unwrap_or(SIMULATE);
            let run = || match find_named(studies::ANALYSES.experiments, kind) {
                Some(experiment) => experiment(context, &spec),
                None => simulate::run_experiment(context, &spec, &*self.ground),
            };
            let frame = context.get_or_compute(&what, run)?;
            frames.frames.insert(name.clone(), frame);
        }
        Ok(frames)
    }

    fn view_experiments(&self, context: &ExperimentContext<'_>) -> Result<StudyOutput, StudyError> {
        let frames = self.run_experiments(context)?;
        let mut shown = vec![tables::headline(&frames, &self.file.headline)?];
        for spec in &self.file.tables {
            let analysis = spec.analysis.as_deref().unwrap_or_default();
            shown.push(match find_named(studies::ANALYSES.tables, analysis) {
                Some(table) => table(spec, &frames)?,
                None => tables::table(&frames, spec)?,
            });
        }
        let mut drawn = Vec::new();
        for spec in &self.file.figures {
            drawn.extend(figures::figure(&frames, spec)?);
        }
        let warnings = frames.frames.values().flat_map(|frame| &frame.warnings);
        let mut notes: Vec<String> = warnings.cloned().collect();
        for spec in &self.file.notes {
            if spec.quick_only && context.scale() != Scale::Quick {
                continue;
            }
            let analysis = spec.analysis.as_deref().unwrap_or_default();
            notes.extend(match find_named(studies::ANALYSES.notes, analysis) {
                Some(write_notes) => write_notes(&frames),
                None => notes::notes(&frames, spec),
            });
        }
        let runs = frames.frames.values().map(|frame| frame.runs);
        Ok(StudyOutput {
            tables: shown,
            figures: drawn,
            notes,
            // Those of the experiment that has most.
            runs: runs.max().unwrap_or(0),
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

    fn published(&self) -> &[OutcomeSpec] {
        &self.file.published
    }

    fn run(&self, context: &ExperimentContext<'_>) -> Result<StudyOutput, StudyError> {
        let whole = self.file.analysis.as_deref();
        match whole.and_then(|name| find_named(studies::ANALYSES.studies, name)) {
            Some(analysis) => analysis(context, &self.file),
            None => self.view_experiments(context),
        }
    }
}
