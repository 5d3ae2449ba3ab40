//! The JSON document of `consort train`. Keys are a contract: add, never rename.

use super::outcome::{TrainedLevel, TrainedModel};
use super::worst_programs::WorstProgram;
use crate::cli::{self, TrainArgs};
use consort_experiment::train::ErrorSpread;
use serde::Serialize;

/// The whole result; what stands beside `levels` is that of its first level.
#[derive(Serialize)]
pub(super) struct ModelDocument<'a> {
    machine: &'a str,
    model: &'a str,
    model_file: Option<String>,
    source: &'a str,
    date: &'a str,
    seed: u64,
    folds: u32,
    programs: &'a [String],
    #[serde(flatten)]
    first: Option<LevelDocument<'a>>,
    levels: Vec<LevelDocument<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct LevelDocument<'a> {
    ways: u32,
    rows: usize,
    co_runs: usize,
    components: Vec<ComponentDocument<'a>>,
    forward_error: ErrorDocument,
    inverse_error: ErrorDocument,
    held_out_error: ErrorDocument,
    held_out_inverse_error: ErrorDocument,
    /// Share of the co-runs of which the inverse model kept a guess.
    guesses_kept: f64,
    worst_programs: &'a [WorstProgram],
}

#[derive(Serialize)]
struct ComponentDocument<'a> {
    name: &'a str,
    alpha: f64,
    beta: f64,
    gamma: f64,
    delta: f64,
    r2: Option<f64>,
    held_out_r2: Option<f64>,
}

/// Errors as shares: of the measured slowdown, or of the cycles alone.
#[derive(Serialize)]
struct ErrorDocument {
    mean_abs: f64,
    p95: f64,
    count: usize,
    histogram: Vec<BinDocument>,
}

/// A bin; open ends are null.
#[derive(Serialize)]
struct BinDocument {
    from: Option<f64>,
    to: Option<f64>,
    count: u64,
}

impl<'a> ModelDocument<'a> {
    pub(super) fn new(args: &TrainArgs, outcome: &'a TrainedModel) -> Self {
        let model = &outcome.model;
        let level = |level: &'a TrainedLevel| LevelDocument::new(level, &model.components);
        Self {
            machine: &model.machine,
            model: &model.name,
            model_file: cli::own_output(&args.out).map(|path| path.display().to_string()),
            source: &model.provenance.source,
            date: &model.provenance.date,
            seed: args.seed,
            folds: args.folds,
            programs: &model.provenance.programs,
            first: outcome.levels.first().map(level),
            levels: outcome.levels.iter().map(level).collect(),
            notes: &outcome.notes,
        }
    }
}

impl<'a> LevelDocument<'a> {
    fn new(level: &'a TrainedLevel, names: &'a [String]) -> Self {
        Self {
            ways: level.ways,
            rows: level.rows,
            co_runs: level.co_runs,
            components: components(level, names),
            forward_error: ErrorDocument::from_spread(&level.seen.forward),
            inverse_error: ErrorDocument::from_spread(&level.seen.inverse),
            held_out_error: ErrorDocument::from_spread(&level.held_out.forward),
            held_out_inverse_error: ErrorDocument::from_spread(&level.held_out.inverse),
            guesses_kept: level.seen.guesses_kept as f64 / level.seen.inverted.max(1) as f64,
            worst_programs: &level.worst,
        }
    }
}

fn components<'a>(level: &TrainedLevel, names: &'a [String]) -> Vec<ComponentDocument<'a>> {
    let parameters = level.fit.level.parameters().iter();
    let r2 = level.fit.r2.iter().zip(&level.held_out.r2);
    let rows = names.iter().zip(parameters).zip(r2);
    rows.map(
        |((name, parameters), (r2, held_out_r2))| ComponentDocument {
            name,
            alpha: parameters.alpha,
            beta: parameters.beta,
            gamma: parameters.gamma,
            delta: parameters.delta,
            r2: *r2,
            held_out_r2: *held_out_r2,
        },
    )
    .collect()
}

impl ErrorDocument {
    fn from_spread(spread: &ErrorSpread) -> Self {
        let edge = |percent: f64| percent.is_finite().then_some(percent / 100.0);
        let bins = spread.histogram.bins();
        Self {
            mean_abs: spread.size.mean_absolute_percent / 100.0,
            p95: spread.size.p95_percent / 100.0,
            count: spread.count,
            histogram: bins
                .map(|(low, high, count)| BinDocument {
                    from: edge(low),
                    to: edge(high),
                    count,
                })
                .collect(),
        }
    }
}
