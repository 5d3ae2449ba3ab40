//! From training runs to a model with its errors.

use super::TrainingData;
use super::worst_programs::{WorstProgram, rank_worst};
use crate::cli::{self, TrainArgs};
use crate::failure::bad_input;
use anyhow::Result;
use consort_core::model::{InterferenceModel, Provenance};
use consort_experiment::train::{
    FittedLevel, LevelErrors, TrainingSet, cross_validate, errors, fit,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A model and how well it does.
pub(super) struct TrainedModel {
    pub(super) model: InterferenceModel,
    pub(super) levels: Vec<TrainedLevel>,
    pub(super) notes: Vec<String>,
}

/// One number of threads per core.
pub(super) struct TrainedLevel {
    pub(super) ways: u32,
    pub(super) programs: usize,
    pub(super) rows: usize,
    pub(super) co_runs: usize,
    pub(super) fit: FittedLevel,
    /// Errors on the programs that it was trained on.
    pub(super) seen: LevelErrors,
    /// Errors on programs that it was not trained on.
    pub(super) held_out: LevelErrors,
    /// The programs that it predicts worst, worst first.
    pub(super) worst: Vec<WorstProgram>,
}

impl TrainedModel {
    /// Fits and tests every level.
    pub(super) fn fit_model(lesson: &TrainingData, args: &TrainArgs) -> Result<Self> {
        let folds = args.folds as usize;
        let levels = lesson
            .sets
            .iter()
            .map(|set| TrainedLevel::fit_level(set, folds));
        let levels = levels.collect::<Result<Vec<_>>>()?;
        let components = lesson.sets.first().map(|set| set.components.clone());
        let model = InterferenceModel {
            name: name(args, &lesson.machine),
            machine: lesson.machine.clone(),
            components: components.unwrap_or_default(),
            levels: levels.iter().map(|level| level.fit.level.clone()).collect(),
            provenance: provenance(lesson, &levels),
        };
        let absent = levels.iter().flat_map(TrainedLevel::absent_note);
        let notes = lesson.notes.iter().cloned().chain(absent).collect();
        Ok(Self {
            model,
            levels,
            notes,
        })
    }
}

impl TrainedLevel {
    fn fit_level(set: &TrainingSet, folds: usize) -> Result<Self> {
        let fit = fit(set).map_err(bad_input)?;
        Ok(Self {
            ways: set.ways,
            programs: set.programs().len(),
            rows: set.rows.len(),
            co_runs: set.co_runs(),
            seen: errors(&fit.level, set).map_err(bad_input)?,
            held_out: cross_validate(set, folds).map_err(bad_input)?,
            worst: rank_worst(&fit.level, set),
            fit,
        })
    }

    fn absent_note(&self) -> Option<String> {
        let absent = &self.fit.absent;
        (!absent.is_empty()).then(|| {
            let (names, ways) = (absent.join(", "), self.ways);
            format!("components that never occurred with {ways} threads per core: {names}")
        })
    }
}

/// The file's name without its end, else the machine's.
fn name(args: &TrainArgs, machine: &str) -> String {
    let stem = cli::own_output(&args.out).and_then(Path::file_stem);
    let stem = stem.and_then(std::ffi::OsStr::to_str);
    stem.unwrap_or(machine).to_owned()
}

fn provenance(lesson: &TrainingData, levels: &[TrainedLevel]) -> Provenance {
    let programs: BTreeSet<&str> = lesson.sets.iter().flat_map(TrainingSet::programs).collect();
    Provenance {
        source: lesson.source.clone(),
        date: today(),
        programs: programs.into_iter().map(str::to_owned).collect(),
        quanta: levels.iter().map(|level| level.co_runs as u64).sum(),
        accuracy: levels
            .iter()
            .map(|level| level.held_out.accuracy())
            .collect(),
    }
}

/// The day, UTC; that of SOURCE_DATE_EPOCH (reproducible-builds.org) where it is set, so that a
/// model can be made again byte for byte.
fn today() -> String {
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok();
    let set = epoch
        .and_then(|text| text.parse().ok())
        .map(Duration::from_secs);
    let now = set.map_or_else(SystemTime::now, |since| SystemTime::UNIX_EPOCH + since);
    let text = humantime::format_rfc3339_seconds(now).to_string();
    text.split('T').next().unwrap_or_default().to_owned()
}
