//! `consort reproduce`: published experiments, run again.

mod list;
mod print;

use crate::descriptions::Programs;
use crate::failure::{bad_input, say};
use crate::options::{Jobs, NUMBERS, TABLE, scale, seed_parser};
use crate::output::OutputFormat;
use crate::output::file::{TableOutput, own_output, table_output};
use crate::{progress, values};
use anyhow::Result;
use clap::Args;
use consort_experiment::{SharedResults, StageProgress};
use consort_lab::reference::{self, ReferenceLine};
use consort_lab::runner::{self, StudyOutcome, StudySettings};
use consort_lab::{
    FileStudy, Registry, Study, StudyReport, StudyStore, VERSION, pages, study_to_long_table,
};
pub(crate) use list::list_studies;
use print::StudyPrinter;
pub(crate) use print::grid;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(crate) struct ReproduceArgs {
    /// Studies by id or by file (FILE.toml), or `all` that come with Consort
    #[arg(required = true, value_name = "ID", add = values::study_ids())]
    pub(crate) studies: Vec<String>,
    /// Make fewer and shorter runs, for a preview
    #[arg(long)]
    pub(crate) quick: bool,
    /// Seed instead of each study's own
    #[arg(long, value_name = "N", value_parser = seed_parser())]
    pub(crate) seed: Option<u64>,
    #[arg(short, long, value_name = "PATH", help = format!("Write tables, figures and pages to the folder PATH, {FOLDER} if none is named, or every number to {TABLE}, {NUMBERS}; repeat it for both"))]
    pub(crate) out: Vec<PathBuf>,
    /// CSV file of published figures (study,row,value; column, unit and section if known) to compare with in place of the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(crate) reference: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Output format; csv has a line per number, with the columns of a reference file
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Folder of results if no other is named.
const FOLDER: &str = "consort-studies";

/// Word that stands for the list instead of a run.
const LIST: &str = "list";

pub(crate) fn execute(args: &ReproduceArgs) -> Result<ExitCode> {
    if args.studies.iter().any(|id| id.eq_ignore_ascii_case(LIST)) {
        if let Some(other) = { args.studies.iter() }.find(|id| !id.eq_ignore_ascii_case(LIST)) {
            return Err(bad_input(format!(
                "'{LIST}' stands alone, without '{other}'; leave out one of them"
            )));
        }
        list::print_list(table_output(&args.out), args.format)?;
        return Ok(ExitCode::SUCCESS);
    }
    let known = consort_lab::registry().map_err(bad_input)?;
    let studies = select_studies(&known, &args.studies)?;
    let reference = match &args.reference {
        Some(path) => reference::read(path),
        None => reference::built_in(),
    };
    let reference = reference.map_err(bad_input)?;
    let file = TableOutput::begin_from_out(&args.out, 0)?;
    let folder = own_output(&args.out).unwrap_or(Path::new(FOLDER));
    let store = StudyStore::open(folder).map_err(bad_input)?;
    let own = { studies.iter() }.filter(|study| known.find(&study.info().id).is_err());
    let batch = StudyBatch {
        settings: StudySettings {
            seed: args.seed,
            scale: scale(args.quick),
            workers: args.jobs.workers(),
            version: VERSION.to_owned(),
            made: SharedResults::default(),
        },
        store,
        reference,
        is_own_reference: args.reference.is_some(),
        known: Registry::new(known.studies().iter().chain(own).map(Arc::clone).collect()),
    };
    batch.run(&studies, args.format, file)?;
    Ok(ExitCode::SUCCESS)
}

/// Studies to be run into one folder.
struct StudyBatch {
    settings: StudySettings,
    store: StudyStore,
    reference: Vec<ReferenceLine>,
    /// True if the user named the file of published figures.
    is_own_reference: bool,
    /// Studies that the folder can hold: the built-in ones and the ones of this run.
    known: Registry,
}

impl StudyBatch {
    /// Runs the studies one after the other. The result of a study is stored, written and shown before
    /// the next begins, so that an interruption costs only the study under way.
    fn run(
        &self,
        studies: &[Arc<dyn Study>],
        format: OutputFormat,
        mut file: TableOutput,
    ) -> Result<()> {
        let mut printer = StudyPrinter::begin(format)?;
        for (index, study) in studies.iter().enumerate() {
            let place = format!("{} ({} of {})", study.info().id, index + 1, studies.len());
            let bar = progress::start_meter(place);
            let report_progress = |at: StageProgress| bar.set_done(at.done, at.total);
            let outcome = runner::run(
                &**study,
                &self.settings,
                Some(&self.store),
                &report_progress,
            );
            bar.finish();
            let outcome = outcome?;
            let resumed = matches!(outcome, StudyOutcome::Loaded(_));
            let report = outcome.into_report();
            let compared = reference::compare(&self.reference, &[(&report, study.published())]);
            let view = compared.view()?;
            pages::write(self.store.folder(), &report, view.as_ref(), true)?;
            self.write_index()?;
            // What the built-in figures lack is in the tables.
            for gap in { compared.unmatched.iter() }.filter(|_| self.is_own_reference) {
                let [study, row, column] = &gap.names;
                say(&format!(
                    "reference line {} ({study}, {row}, {column}): {}",
                    gap.line, gap.reason
                ));
            }
            file.add(|| study_to_long_table(&report))?;
            printer.print_study(report, compared, resumed)?;
        }
        file.finish()?;
        printer.finish(self.store.folder())
    }

    /// The index is about all that the folder holds of these settings, earlier runs included.
    fn write_index(&self) -> Result<()> {
        // A stored report of another study that cannot be read does not concern this run.
        let stored = self.known.studies().iter().filter_map(|study| {
            let report = runner::load_stored_report(&**study, &self.settings, &self.store);
            Some((report.ok().flatten()?, study.published()))
        });
        let stored: Vec<_> = stored.collect();
        let both: Vec<_> = stored
            .iter()
            .map(|(report, specs)| (report, *specs))
            .collect();
        let reports: Vec<&StudyReport> = stored.iter().map(|(report, _)| report).collect();
        let compared = reference::compare(&self.reference, &both);
        pages::write_index(self.store.folder(), &reports, compared.view()?.as_ref())?;
        Ok(())
    }
}

/// The requested studies, by id or by file, each once and in the order of the request.
fn select_studies(known: &Registry, requested: &[String]) -> Result<Vec<Arc<dyn Study>>> {
    let mut chosen: Vec<Arc<dyn Study>> = Vec::new();
    for text in requested {
        // Ids have neither strokes nor points.
        let found = match text.contains(['/', '.']) {
            true => vec![read_study(known, text)?],
            false => known.select(&[text]).map_err(bad_input)?,
        };
        for study in found {
            if chosen.iter().all(|c| c.info().id != study.info().id) {
                chosen.push(study);
            }
        }
    }
    Ok(chosen)
}

fn read_study(known: &Registry, path: &str) -> Result<Arc<dyn Study>> {
    let text = consort_describe::input::read_text(Path::new(path));
    let text = text.map_err(|error| bad_input(format!("{path}: {error}")))?;
    let study = FileStudy::parse(path, &text, Arc::new(Programs)).map_err(bad_input)?;
    let id = study.info().id.clone();
    if known.find(&id).is_ok() {
        return Err(bad_input(format!(
            "{path}: id: '{id}' is a study that comes with Consort; choose another"
        )));
    }
    Ok(Arc::new(study))
}
