//! `consort train`: an interference model from training runs, simulated or on this machine, or from
//! measured rows.

mod live;
mod rows;
mod show;
mod simulated;

use crate::failure::bad_input;
use crate::options::{Jobs, LIVE, NUMBERS, TABLE, count_parser, parse_simulated, seed_parser};
use crate::output::file::{OutFile, TableOutput, own_output};
use crate::output::{self, OutputFormat};
use crate::values;
use anyhow::Result;
use clap::Args;
use consort_core::model::{InterferenceModel, LevelParameters, Provenance};
use consort_core::split_unquoted;
use consort_experiment::train::{
    FittedLevel, LevelErrors, MIN_PROGRAMS, SlowdownShares, TrainingSet, cross_validate, errors,
    fit, slowdown_shares,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

#[derive(Debug, Args)]
pub(crate) struct TrainArgs {
    /// Machine to train on: NAME or FILE.toml for a simulated one, or `live` for this one; with --rows
    /// the name of the machine that they are of
    #[arg(short, long, value_name = "MACHINE", default_value = LIVE, add = values::machines_and_live())]
    pub(crate) machine: String,
    /// Training programs, comma-separated: simulated ones (all of spec2006 if not given), or kernels on
    /// the live machine; quotes let a path contain a comma
    #[arg(long, value_name = "PROGRAMS", short_alias = 'p', add = values::program_list())]
    programs: Vec<String>,
    /// Train on a command, run alone and next to every other one and to itself, on the live machine;
    /// once for each, for example --command 'xz -k big' --command 'gzip -kf big'
    #[arg(short, long, value_name = "CMD", conflicts_with_all = ["programs", "rows", "duration"], add = values::command())]
    pub(crate) command: Vec<String>,
    /// Write the measured pairs to FILE.csv, which --rows reads
    #[arg(long, value_name = "FILE", conflicts_with = "rows")]
    save_rows: Option<PathBuf>,
    /// Train on the measured pairs of FILE, a CSV file, instead of runs: columns program, corunner,
    /// slowdown (time next to the co-runner over time alone), and one per component of the
    /// program's time alone; optionally also together.COMPONENT, of its time next to the co-runner
    #[arg(long, value_name = "FILE")]
    pub(crate) rows: Option<PathBuf>,
    /// Take the components of --rows from FILE, a CSV file: column program, and one per component of
    /// its time alone
    #[arg(long, value_name = "FILE", requires = "rows")]
    pub(crate) components: Option<PathBuf>,
    /// Threads per core to train for, comma-separated; 2, and 4 if a simulated core takes as many
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = count_parser::<u32>(2..=8))]
    pub(crate) ways: Vec<u32>,
    /// Time of each run; 10s simulated, 500ms live
    #[arg(long, value_name = "TIME", alias = "seconds", value_parser = parse_simulated)]
    pub(crate) duration: Option<Duration>,
    /// Parts of the programs; each is held out once to test on
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count_parser::<u32>(2..=100))]
    pub(crate) folds: u32,
    /// Seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    #[arg(short, long, value_name = "PATH", help = format!("Write the model to PATH.toml, or every number to {TABLE}, {NUMBERS}; repeat it for both"))]
    pub(crate) out: Vec<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
    /// Make fewer and shorter runs, for a preview
    #[arg(long)]
    pub(crate) quick: bool,
    /// Treat two CPUs of the live machine as if they shared a core
    #[arg(long, value_name = "CPU,CPU", value_delimiter = ',', num_args = 1)]
    pub(crate) as_siblings: Vec<u32>,
    #[command(flatten)]
    pub(crate) jobs: Jobs,
    /// Output format; csv lists the components
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

impl TrainArgs {
    /// The names in `--programs`, with their quotes.
    pub(crate) fn programs(&self) -> Vec<&str> {
        let lists = self.programs.iter();
        let names = lists.flat_map(|list| split_unquoted(list, ',', &[]));
        names.map(str::trim).collect()
    }
}

/// Result of training runs, on a simulated machine or on this one.
struct TrainingData {
    /// The machine's name, as the model will have it.
    machine: String,
    /// Origin of the runs, one sentence.
    source: String,
    /// One set per number of threads on a core, ascending.
    sets: Vec<TrainingSet>,
    /// Notes on the result, one sentence each.
    notes: Vec<String>,
}

pub(crate) fn execute(args: &TrainArgs) -> Result<ExitCode> {
    // Before anything is run, so that a bad path wastes no time.
    let table = TableOutput::begin_from_out(&args.out, 0)?;
    let file = own_output(&args.out).map(|path| OutFile::create("model", path, args.force));
    let file = file.transpose()?;
    let saved = { args.save_rows.as_deref() }
        .map(|path| OutFile::create("rows", path, args.force))
        .transpose()?;
    let data = match (&args.rows, args.machine.as_str()) {
        (Some(rows), _) => rows::train_on_rows(args, rows)?,
        (None, LIVE) => live::train_live(args)?,
        (None, _) => simulated::train_simulated(args)?,
    };
    // Before the fit, which may fail: the rows took most of the time.
    if let Some(file) = saved {
        file.write(&rows::rows_to_csv(&data.sets)?)?;
    }
    let outcome = TrainedModel::fit_model(&data, args)?;
    if let Some(file) = file {
        file.write(&outcome.model.to_toml())?;
    }
    table.write(|| show::table(args, &outcome))?;
    let rows = show::component_rows(&outcome);
    let document = show::ModelDocument::new(args, &outcome);
    output::print(args.format, show::CSV_COLUMNS, &rows, &document, || {
        show::report(args, &outcome)
    })?;
    Ok(ExitCode::SUCCESS)
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

/// A model with its errors.
struct TrainedModel {
    model: InterferenceModel,
    levels: Vec<TrainedLevel>,
    notes: Vec<String>,
}

/// One number of threads per core.
struct TrainedLevel {
    ways: u32,
    programs: usize,
    rows: usize,
    co_runs: usize,
    fit: FittedLevel,
    /// Errors on the programs that it was trained on.
    seen: LevelErrors,
    /// Errors on programs that it was not trained on.
    held_out: LevelErrors,
    /// The programs that it predicts worst, worst first.
    worst: Vec<WorstProgram>,
    /// Parts of victim, co-runner and both in the slowdowns; `None` unless they are of pairs.
    shares: Option<SlowdownShares>,
}

impl TrainedModel {
    /// Fits and tests every level.
    fn fit_model(data: &TrainingData, args: &TrainArgs) -> Result<Self> {
        let folds = args.folds as usize;
        let levels = data
            .sets
            .iter()
            .map(|set| TrainedLevel::fit_level(set, folds));
        let levels = levels.collect::<Result<Vec<_>>>()?;
        let components = data.sets.first().map(|set| set.components.clone());
        let model = InterferenceModel {
            name: name(args, &data.machine),
            machine: data.machine.clone(),
            components: components.unwrap_or_default(),
            levels: levels.iter().map(|level| level.fit.level.clone()).collect(),
            provenance: provenance(data, &levels),
        };
        let mut notes = data.notes.clone();
        for level in { levels.iter() }.filter(|level| !level.fit.absent.is_empty()) {
            let (names, ways) = (level.fit.absent.join(", "), level.ways);
            notes.push(format!(
                "components that never occurred with {ways} threads per core: {names}"
            ));
        }
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
            shares: slowdown_shares(&fit.level, set),
            fit,
        })
    }
}

/// The file's name without its extension, else the machine's.
fn name(args: &TrainArgs, machine: &str) -> String {
    let stem = own_output(&args.out).and_then(Path::file_stem);
    let stem = stem.and_then(std::ffi::OsStr::to_str);
    stem.unwrap_or(machine).to_owned()
}

fn provenance(data: &TrainingData, levels: &[TrainedLevel]) -> Provenance {
    let programs: BTreeSet<&str> = data.sets.iter().flat_map(TrainingSet::programs).collect();
    // With SOURCE_DATE_EPOCH (reproducible-builds.org) a model can be made again byte for byte.
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok();
    let epoch = epoch.and_then(|text| text.parse().ok());
    let now = epoch.map_or_else(SystemTime::now, |seconds| {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    });
    let now = humantime::format_rfc3339_seconds(now).to_string();
    let is_inverted = |level: &&TrainedLevel| level.held_out.inverted > 0;
    // A model file has both errors of a level or none.
    let untested = levels.iter().filter(|level| !is_inverted(level));
    let untested = untested.map(|level| {
        let error = level.held_out.forward.size.mean_absolute_percent;
        format!("; slowdowns of programs held out within {error:.1} percent on average")
    });
    Provenance {
        source: std::iter::once(data.source.clone())
            .chain(untested)
            .collect(),
        date: now.split('T').next().unwrap_or_default().to_owned(),
        programs: programs.into_iter().map(str::to_owned).collect(),
        quanta: levels.iter().map(|level| level.co_runs as u64).sum(),
        accuracy: { levels.iter() }
            .filter(is_inverted)
            .map(|level| level.held_out.accuracy())
            .collect(),
    }
}

/// One program's errors on the training set.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct WorstProgram {
    program: String,
    /// Mean slowdown measured.
    slowdown: f64,
    /// Mean slowdown predicted.
    predicted: f64,
    /// Mean magnitude of the errors, as a share of the measured slowdown.
    mean_abs: f64,
    /// The component with the largest mean magnitude of residuals; empty if only slowdowns are known.
    component: String,
    /// That mean, in ST cycles of the program.
    residual: f64,
}

/// Sums over one program's rows.
#[derive(Default)]
struct ProgramErrorSums {
    rows: f64,
    slowdown: f64,
    predicted: f64,
    relative: f64,
    residuals: Vec<f64>,
}

/// Returns all programs, worst first.
fn rank_worst(level: &LevelParameters, set: &TrainingSet) -> Vec<WorstProgram> {
    let mut programs: BTreeMap<&str, ProgramErrorSums> = BTreeMap::new();
    for row in &set.rows {
        let sums = programs.entry(&row.program).or_default();
        let mut together = vec![0.0; row.own.len()];
        level.predict_stack(&row.own, &row.others, &mut together);
        let (slowdown, predicted) = (row.slowdown(), level.slowdown(&row.own, &row.others));
        sums.rows += 1.0;
        sums.slowdown += slowdown;
        sums.predicted += predicted;
        sums.relative += (predicted - slowdown).abs() / slowdown;
        sums.residuals.resize(together.len(), 0.0);
        let both = together.iter().zip(&row.together);
        for (sum, (predicted, measured)) in sums.residuals.iter_mut().zip(both) {
            *sum += (predicted - measured).abs();
        }
    }
    let mut worst = Vec::new();
    for (program, sums) in programs {
        let named = set.components.iter().zip(&sums.residuals);
        let known = named.filter(|_| !set.slowdowns_only);
        let largest = known.max_by(|a, b| a.1.total_cmp(b.1));
        worst.push(WorstProgram {
            program: program.to_owned(),
            slowdown: sums.slowdown / sums.rows,
            predicted: sums.predicted / sums.rows,
            mean_abs: sums.relative / sums.rows,
            component: largest.map_or_else(String::new, |(name, _)| name.clone()),
            residual: largest.map_or(0.0, |(_, sum)| sum / sums.rows),
        });
    }
    worst.sort_by(|a, b| b.mean_abs.total_cmp(&a.mean_abs));
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::model::ComponentParameters;
    use consort_experiment::train::TrainingRow;

    #[test]
    fn worst_program_and_component_come_first() {
        let unchanged = ComponentParameters {
            beta: 1.0,
            ..ComponentParameters::default()
        };
        let level = LevelParameters::new(2, vec![unchanged; 2]).unwrap();
        let row = |program: &str, data: f64| TrainingRow {
            program: program.to_owned(),
            own: vec![0.5, 0.5],
            others: vec![0.5, 0.5],
            together: vec![0.5, data],
            ..TrainingRow::default()
        };
        let set = TrainingSet {
            ways: 2,
            components: vec!["base".to_owned(), "data".to_owned()],
            rows: vec![row("right", 0.5), row("wrong", 1.5)],
            ..TrainingSet::default()
        };
        let worst = rank_worst(&level, &set);
        assert_eq!(
            (worst[0].program.as_str(), worst[0].component.as_str()),
            ("wrong", "data")
        );
        assert_eq!((worst[0].slowdown, worst[0].predicted), (2.0, 1.0));
        assert_eq!((worst[0].mean_abs, worst[0].residual), (0.5, 1.0));
        assert_eq!(worst[1].mean_abs, 0.0);
    }
}
