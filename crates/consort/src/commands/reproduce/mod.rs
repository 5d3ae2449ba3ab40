//! `consort reproduce`: published experiments, run again.

mod list;
mod print;
mod reference;
mod rows;
mod user_studies;

use crate::cli::{self, OutputFormat, ReproduceArgs};
use crate::failure::bad_input;
use crate::progress;
use crate::table_file::TableOutput;
use anyhow::Result;
use consort_experiment::{Scale, SharedResults, StageProgress};
use consort_lab::pages;
use consort_lab::runner::{self, StudyOutcome, StudySettings};
use consort_lab::{Registry, Study, StudyReport, StudyStore, VERSION, study_to_long_table};
use print::StudyPrinter;
pub(crate) use print::grid;
use reference::PublishedFigures;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Folder of results if no other is named.
const FOLDER: &str = "consort-studies";
/// The word that asks for the list instead of a run.
const LIST: &str = "list";

pub(crate) fn execute(args: &ReproduceArgs) -> Result<ExitCode> {
    if args.studies.iter().any(|id| id.eq_ignore_ascii_case(LIST)) {
        return list::execute(args);
    }
    let known = consort_lab::registry().map_err(bad_input)?;
    let studies = user_studies::select(&known, &args.studies)?;
    let reference = PublishedFigures::read(args.reference.as_deref())?;
    let file = TableOutput::begin_from_out(&args.out)?;
    let folder = cli::own_output(&args.out).unwrap_or(Path::new(FOLDER));
    let store = StudyStore::open(folder).map_err(bad_input)?;
    let batch = StudyBatch {
        settings: settings(args),
        store,
        reference,
        known: user_studies::extend_registry(&known, &studies),
    };
    batch.run(&studies, args.format, file)?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &ReproduceArgs) -> StudySettings {
    StudySettings {
        seed: args.seed,
        scale: if args.quick {
            Scale::Quick
        } else {
            Scale::Full
        },
        workers: args.jobs.workers(),
        version: VERSION.to_owned(),
        made: SharedResults::default(),
    }
}

/// Studies to be run into one folder.
struct StudyBatch {
    settings: StudySettings,
    store: StudyStore,
    reference: PublishedFigures,
    /// Studies that the folder can hold: those that come with Consort, and those of this run.
    known: Registry,
}

impl StudyBatch {
    /// Runs the studies one after the other. What a study gave is kept, written and shown before
    /// the next begins, so that an interruption costs the one under way.
    fn run(
        &self,
        studies: &[Arc<dyn Study>],
        format: OutputFormat,
        mut file: TableOutput,
    ) -> Result<()> {
        let mut printer = StudyPrinter::begin(format)?;
        for (index, study) in studies.iter().enumerate() {
            let place = format!("{} ({} of {})", study.info().id, index + 1, studies.len());
            let outcome = self.run_one(&**study, place)?;
            let resumed = matches!(outcome, StudyOutcome::Loaded(_));
            let report = outcome.into_report();
            let compared = self.reference.compare(&[&report])?;
            pages::write(self.store.folder(), &report, compared.table())?;
            self.write_index()?;
            self.reference.warn(&compared);
            file.add(|| study_to_long_table(&report))?;
            printer.print_study(report, compared, resumed)?;
        }
        file.finish()?;
        printer.finish(self.store.folder())
    }

    fn run_one(&self, study: &dyn Study, place: String) -> Result<StudyOutcome> {
        let bar = progress::start_meter(place);
        let report_progress = |at: StageProgress| bar.set_done(at.done, at.total);
        let outcome = runner::run(study, &self.settings, Some(&self.store), &report_progress);
        bar.finish();
        Ok(outcome?)
    }

    /// The index is about all that the folder holds of these settings, earlier runs included.
    fn write_index(&self) -> Result<()> {
        let reports = self.finished_reports()?;
        let reports: Vec<&StudyReport> = reports.iter().collect();
        let compared = self.reference.compare(&reports)?;
        pages::write_index(self.store.folder(), &reports, compared.table())?;
        Ok(())
    }

    /// A file of another study that cannot be read is none of this run's business.
    fn finished_reports(&self) -> Result<Vec<StudyReport>> {
        let kept = self.known.studies().iter().filter_map(|study| {
            runner::load_stored_report(&**study, &self.settings, &self.store)
                .ok()
                .flatten()
        });
        Ok(kept.collect())
    }
}
