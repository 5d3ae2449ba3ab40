//! Running a study, unless it is already done.

use crate::store::{StoreError, StoreKey, StudyStore};
use crate::study::{Study, StudyError, StudyOutput, StudyReport};
use consort_data::{HEADLINE, ReportTable};
use consort_experiment::{ExperimentContext, Scale, SharedResults, StageProgress};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::time::Instant;
use thiserror::Error;

/// Settings under which studies are run.
#[derive(Clone, Debug)]
pub struct StudySettings {
    /// Seed in place of each study's own.
    pub seed: Option<u64>,
    /// Extent of each study.
    pub scale: Scale,
    /// Threads to run on.
    pub workers: NonZeroUsize,
    /// See [`StoreKey::version`].
    pub version: String,
    /// Finished results that several studies share.
    pub made: SharedResults,
}

/// A study's result, run now or loaded.
#[derive(Clone, Debug, PartialEq)]
pub enum StudyOutcome {
    /// It was run now.
    Ran(StudyReport),
    /// It was finished before, with the same seed, scale and version.
    Loaded(StudyReport),
}

impl StudyOutcome {
    /// The result.
    pub fn into_report(self) -> StudyReport {
        match self {
            Self::Ran(report) | Self::Loaded(report) => report,
        }
    }
}

/// Reason why there is no result.
#[derive(Debug, Error)]
pub enum StudyRunError {
    /// The study failed.
    #[error("study {id}: {cause}")]
    Study {
        /// Its id.
        id: String,
        /// The cause.
        cause: StudyError,
    },
    /// Results cannot be kept or read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs a study, or loads the result that an earlier run kept. A new result is kept before this
/// returns; an interruption leaves the store as it was.
///
/// # Errors
/// When the study fails, gives two tables or figures of one key, or the store cannot be used.
pub fn run(
    study: &dyn Study,
    settings: &StudySettings,
    store: Option<&StudyStore>,
    progress: &(dyn Fn(StageProgress) + Sync),
) -> Result<StudyOutcome, StudyRunError> {
    let key = store_key(study, settings);
    if let Some(report) = store.map(|s| s.load(&key)).transpose()?.flatten() {
        return Ok(StudyOutcome::Loaded(report));
    }
    let context = ExperimentContext::new(key.seed, key.scale, settings.workers, progress)
        .with_shared_results(&settings.made);
    let start = Instant::now();
    let output = study.run(&context).and_then(check_output);
    let output = output.map_err(|cause| StudyRunError::Study {
        id: key.study.clone(),
        cause,
    })?;
    let mut report = StudyReport::new(study, &context, output);
    report.seconds = start.elapsed().as_secs_f64();
    if let Some(store) = store {
        store.save(&key, &report)?;
    }
    Ok(StudyOutcome::Ran(report))
}

/// The result that an earlier run kept, if it is still valid under these settings.
///
/// # Errors
/// When there is a file that cannot be read or is no result.
pub fn load_stored_report(
    study: &dyn Study,
    settings: &StudySettings,
    store: &StudyStore,
) -> Result<Option<StudyReport>, StoreError> {
    store.load(&store_key(study, settings))
}

fn store_key(study: &dyn Study, settings: &StudySettings) -> StoreKey {
    let info = study.info();
    StoreKey {
        study: info.id.clone(),
        seed: settings.seed.unwrap_or(info.default_seed),
        scale: settings.scale,
        version: settings.version.clone() + study.version(),
    }
}

/// The first table is the headline; keys become file names, so each must occur once.
fn check_output(output: StudyOutput) -> Result<StudyOutput, StudyError> {
    if output.tables.first().map(ReportTable::key) != Some(HEADLINE) {
        return Err(StudyError::NoHeadline);
    }
    let tables = output.tables.iter().map(|table| ("tables", table.key()));
    let figures = output
        .figures
        .iter()
        .map(|figure| ("figures", figure.key()));
    let mut seen = BTreeSet::new();
    for (what, key) in tables.chain(figures) {
        if !seen.insert((what, key)) {
            let key = key.to_owned();
            return Err(StudyError::Twice { what, key });
        }
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::StudyInfo;
    use crate::testing::{Sums, workers};

    fn settings(count: usize) -> StudySettings {
        StudySettings {
            seed: None,
            scale: Scale::Quick,
            workers: workers(count),
            version: "1".to_owned(),
            made: SharedResults::default(),
        }
    }

    fn run_quietly(
        study: &dyn Study,
        settings: &StudySettings,
        store: Option<&StudyStore>,
    ) -> StudyOutcome {
        run(study, settings, store, &|_| ()).unwrap()
    }

    #[test]
    fn finished_study_is_not_run_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = StudyStore::open(folder.path()).unwrap();
        let study = Sums::named("T1");
        let first = run_quietly(&study, &settings(1), Some(&store));
        let second = run_quietly(&study, &settings(4), Some(&store));
        assert!(matches!(first, StudyOutcome::Ran(_)));
        assert!(matches!(second, StudyOutcome::Loaded(_)));
        assert_eq!(first.into_report(), second.into_report());
        assert_eq!(study.times_run(), 1);
        assert!(
            load_stored_report(&study, &settings(1), &store)
                .unwrap()
                .is_some()
        );
        let other_seed = StudySettings {
            seed: Some(8),
            ..settings(1)
        };
        run_quietly(&study, &other_seed, Some(&store));
        assert_eq!(study.times_run(), 2);
    }

    #[test]
    fn any_number_of_workers_gives_the_same_output() {
        let study = Sums::named("T1");
        let one = run_quietly(&study, &settings(1), None).into_report();
        let many = run_quietly(&study, &settings(5), None).into_report();
        assert_eq!(one.output, many.output);
        assert_eq!((one.seed, one.scale), (7, Scale::Quick));
    }

    struct Failing(Sums);

    impl Study for Failing {
        fn info(&self) -> &StudyInfo {
            self.0.info()
        }

        fn run(&self, context: &ExperimentContext<'_>) -> Result<StudyOutput, StudyError> {
            let mut output = self.0.run(context)?;
            output.tables.push(output.tables[1].clone());
            Ok(output)
        }
    }

    #[test]
    fn failed_study_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let store = StudyStore::open(folder.path()).unwrap();
        let study = Failing(Sums::named("T1"));
        let error = run(&study, &settings(1), Some(&store), &|_| ()).unwrap_err();
        let expected = "study T1: two tables have the key 'sums'; each needs its own";
        assert_eq!(error.to_string(), expected);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
