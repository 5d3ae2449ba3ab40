//! `consort reproduce`: published experiments, run again.

mod list;
mod own;
mod print;
mod reference;
mod rows;

use crate::cli::{self, Format, ReproduceArgs};
use crate::failure::bad_input;
use crate::progress;
use crate::table_file::TableFile;
use anyhow::Result;
use consort_experiment::{Made, Progress, Scale};
use consort_lab::pages;
use consort_lab::runner::{self, Outcome, Settings};
use consort_lab::{Registry, Store, Study, StudyReport, VERSION, long};
use print::Printer;
pub(crate) use print::{grid, heads};
use reference::Reference;
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
    let studies = own::select(&known, &args.studies)?;
    let reference = Reference::read(args.reference.as_deref())?;
    let file = TableFile::beside(&args.out)?;
    let folder = cli::own(&args.out).unwrap_or(Path::new(FOLDER));
    let store = Store::open(folder).map_err(bad_input)?;
    let batch = Batch {
        settings: settings(args),
        store,
        reference,
        known: own::with(&known, &studies),
    };
    batch.run(&studies, args.format, file)?;
    Ok(ExitCode::SUCCESS)
}

fn settings(args: &ReproduceArgs) -> Settings {
    Settings {
        seed: args.seed,
        scale: if args.quick {
            Scale::Quick
        } else {
            Scale::Full
        },
        workers: args.jobs.workers(),
        version: VERSION.to_owned(),
        made: Made::default(),
    }
}

/// Studies to be run into one folder.
struct Batch {
    settings: Settings,
    store: Store,
    reference: Reference,
    /// Studies that the folder can hold: those that come with Consort, and those of this run.
    known: Registry,
}

impl Batch {
    /// Runs the studies one after the other. What a study gave is kept, written and shown before
    /// the next begins, so that an interruption costs the one under way.
    fn run(&self, studies: &[Arc<dyn Study>], format: Format, mut file: TableFile) -> Result<()> {
        let mut printer = Printer::begin(format)?;
        for (index, study) in studies.iter().enumerate() {
            let place = format!("{} ({} of {})", study.info().id, index + 1, studies.len());
            let outcome = self.run_one(&**study, place)?;
            let resumed = matches!(outcome, Outcome::Loaded(_));
            let report = outcome.into_report();
            let compared = self.reference.compare(&[&report])?;
            pages::write(self.store.folder(), &report, compared.table())?;
            self.write_index()?;
            self.reference.warn(&compared);
            file.add(|| long::of_study(&report))?;
            printer.study(report, compared, resumed)?;
        }
        file.finish()?;
        printer.finish(self.store.folder())
    }

    fn run_one(&self, study: &dyn Study, place: String) -> Result<Outcome> {
        let bar = progress::counted(place);
        let tell = |at: Progress| bar.at(at.done, at.total);
        let outcome = runner::run(study, &self.settings, Some(&self.store), &tell);
        bar.finish();
        Ok(outcome?)
    }

    /// The index is about all that the folder holds of these settings, earlier runs included.
    fn write_index(&self) -> Result<()> {
        let reports = self.finished()?;
        let reports: Vec<&StudyReport> = reports.iter().collect();
        let compared = self.reference.compare(&reports)?;
        pages::write_index(self.store.folder(), &reports, compared.table())?;
        Ok(())
    }

    /// A file of another study that cannot be read is none of this run's business.
    fn finished(&self) -> Result<Vec<StudyReport>> {
        let kept = self.known.studies().iter().filter_map(|study| {
            runner::kept(&**study, &self.settings, &self.store)
                .ok()
                .flatten()
        });
        Ok(kept.collect())
    }
}
