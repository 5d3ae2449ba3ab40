//! `consort train`: an interference model from training runs, simulated or on this machine.

mod document;
mod histogram;
mod live;
mod outcome;
mod show;
mod simulated;
mod worst_programs;

use crate::cli::{self, LIVE, OutputFormat, TrainArgs};
use crate::failure::bad_input;
use crate::out_file::OutFile;
use crate::output;
use crate::table_file::TableOutput;
use anyhow::Result;
use consort_experiment::train::{MIN_PROGRAMS, TrainingSet};
use document::ModelDocument;
use outcome::TrainedModel;
use std::process::ExitCode;

/// Result of training runs, on a simulated machine or on this one.
struct TrainingData {
    /// The machine's name, as the model will have it.
    machine: String,
    /// Origin of the runs, one sentence.
    source: String,
    /// One set per number of threads on a core, ascending.
    sets: Vec<TrainingSet>,
    /// Notes for readers of the result, one sentence each.
    notes: Vec<String>,
}

pub(crate) fn execute(args: &TrainArgs) -> Result<ExitCode> {
    // Before anything is run, so that a bad path wastes no time.
    let table = TableOutput::begin_from_out(&args.out)?;
    let file = cli::own_output(&args.out).map(|path| OutFile::create("model", path, args.force));
    let file = file.transpose()?;
    let lesson = match args.machine.as_str() {
        LIVE => live::train_live(args)?,
        _ => simulated::train_simulated(args)?,
    };
    let outcome = TrainedModel::fit_model(&lesson, args)?;
    if let Some(file) = file {
        file.write(&outcome.model.to_toml())?;
    }
    table.write(|| show::table(args, &outcome))?;
    print(args, &outcome)?;
    Ok(ExitCode::SUCCESS)
}

fn print(args: &TrainArgs, outcome: &TrainedModel) -> Result<()> {
    let mut out = output::stdout();
    match args.format {
        OutputFormat::Json => output::write_json(&mut out, &ModelDocument::new(args, outcome)),
        OutputFormat::Csv => {
            output::write_csv(&mut out, show::CSV_COLUMNS, &show::component_rows(outcome))
        }
        OutputFormat::Table => Ok(output::print_text(&mut out, &show::report(args, outcome))?),
    }
}

/// Refuses folds that leave too few programs to train on, before anything is run.
fn check_folds(programs: usize, folds: u32) -> Result<()> {
    let folds = folds as usize;
    let needed = (folds..).find(|&n| n - n.div_ceil(folds) >= MIN_PROGRAMS);
    match needed {
        Some(needed) if programs < needed => Err(bad_input(format!(
            "{programs} training programs are too few; with {folds} folds at least {needed} are \
             needed, so that {MIN_PROGRAMS} are left when one fold is held out"
        ))),
        _ => Ok(()),
    }
}
