//! The result of `consort train`: text, CSV, rows, and the JSON document.

use super::{TrainArgs, TrainedLevel, TrainedModel, WorstProgram};
use crate::output::file::own_output;
use crate::output::{self, OutputColumn, number, or_dash, percent, text};
use consort_core::model::Deviation;
use consort_core::stats::EffectShares;
use consort_data::Table;
use consort_data::long::{LongRows, RowOwner};
use consort_experiment::train::{ErrorHistogram, ErrorSpread, SlowdownShares};
use serde::Serialize;

/// Programs in the list of the worst predictions.
const SHOWN: usize = 5;

/// One component at one number of threads per core.
#[derive(Serialize)]
pub(super) struct ComponentRow {
    #[serde(skip)]
    ways: u32,
    name: String,
    alpha: f64,
    beta: f64,
    gamma: f64,
    delta: f64,
    r2: Option<f64>,
    held_out_r2: Option<f64>,
}

struct ErrorRow {
    kind: &'static str,
    size: Deviation,
    count: usize,
}

pub(super) const CSV_COLUMNS: &[OutputColumn<ComponentRow>] = &[
    number("ways", |r| r.ways.to_string()),
    text("component", |r| r.name.clone()),
    number("alpha", |r| r.alpha.to_string()),
    number("beta", |r| r.beta.to_string()),
    number("gamma", |r| r.gamma.to_string()),
    number("delta", |r| r.delta.to_string()),
    number("r2", |r| r.r2.map_or_else(String::new, |v| v.to_string())),
];

const COMPONENTS: &[OutputColumn<ComponentRow>] = &[
    text("component", |r| r.name.clone()),
    number("alpha", |r| format!("{:.4}", r.alpha)),
    number("beta", |r| format!("{:.4}", r.beta)),
    number("gamma", |r| format!("{:.4}", r.gamma)),
    number("delta", |r| format!("{:.4}", r.delta)),
    number("R2", |r| or_dash(r.r2, |v| format!("{v:.3}"))),
    number("held out", |r| {
        or_dash(r.held_out_r2, |v| format!("{v:.3}"))
    }),
];

const ERRORS: &[OutputColumn<ErrorRow>] = &[
    text("error", |r| r.kind.to_owned()),
    number("mean %", |r| format!("{:.2}", r.size.mean_absolute_percent)),
    number("p95 %", |r| format!("{:.2}", r.size.p95_percent)),
    number("values", |r| r.count.to_string()),
];

const WORST: &[OutputColumn<WorstProgram>] = &[
    text("predicted worst", |w| w.program.clone()),
    number("slowdown", |w| format!("{:.3}", w.slowdown)),
    number("predicted", |w| format!("{:.3}", w.predicted)),
    number("mean error %", |w| percent(w.mean_abs, 2)),
    text("mostly in", |w| w.component.clone()),
    number("off by (ST cycles)", |w| format!("{:.3}", w.residual)),
];

/// The components of all levels.
pub(super) fn component_rows(outcome: &TrainedModel) -> Vec<ComponentRow> {
    let rows = |level| level_rows(level, &outcome.model.components);
    outcome.levels.iter().flat_map(rows).collect()
}

/// Every number of the model: the case is `MODEL:WAYS ways:COMPONENT`, or without a component for
/// errors on the programs held out, which are in percent.
pub(super) fn table(args: &TrainArgs, outcome: &TrainedModel) -> Table {
    let mut rows = LongRows::default();
    for level in &outcome.levels {
        let name = format!("{}:{} ways", outcome.model.name, level.ways);
        for row in level_rows(level, &outcome.model.components) {
            let case = format!("{name}:{}", row.name);
            let owner = row_owner(&case, args.seed);
            rows.push(owner, "alpha", row.alpha, None);
            rows.push(owner, "beta", row.beta, None);
            rows.push(owner, "gamma", row.gamma, None);
            rows.push(owner, "delta", row.delta, None);
            rows.push_if_some(owner, "r2", row.r2, None);
            rows.push_if_some(owner, "held_out_r2", row.held_out_r2, None);
        }
        for error in errors(level) {
            let size = error.size;
            let mean = size.mean_absolute_percent;
            let owner = row_owner(&name, args.seed);
            rows.push(owner, &format!("{}_mean", error.kind), mean, Some("%"));
            rows.push(
                owner,
                &format!("{}_p95", error.kind),
                size.p95_percent,
                Some("%"),
            );
        }
    }
    rows.table()
}

fn row_owner(case: &str, seed: u64) -> RowOwner<'_> {
    RowOwner {
        case,
        seed: Some(seed),
        ..RowOwner::default()
    }
}

fn level_rows(level: &TrainedLevel, names: &[String]) -> Vec<ComponentRow> {
    let parameters = level.fit.level.parameters().iter();
    let r2 = level.fit.r2.iter().zip(&level.held_out.r2);
    let rows = names.iter().zip(parameters).zip(r2);
    rows.map(|((name, parameters), (r2, held_out_r2))| ComponentRow {
        ways: level.ways,
        name: name.clone(),
        alpha: parameters.alpha,
        beta: parameters.beta,
        gamma: parameters.gamma,
        delta: parameters.delta,
        r2: *r2,
        held_out_r2: *held_out_r2,
    })
    .collect()
}

pub(super) fn report(args: &TrainArgs, outcome: &TrainedModel) -> String {
    let model = &outcome.model;
    let levels = outcome.levels.iter();
    let levels: String = levels.map(|level| level_text(level, outcome)).collect();
    let notes = outcome.notes.iter().map(|note| format!("note: {note}\n"));
    let file = match own_output(&args.out) {
        Some(path) => format!("model '{}' written to {}\n", model.name, path.display()),
        None => "no file was written; --out FILE keeps the model\n".to_owned(),
    };
    let source = format!("{}: {}\n", model.machine, model.provenance.source);
    [source, levels, notes.collect(), file].concat()
}

fn level_text(level: &TrainedLevel, outcome: &TrainedModel) -> String {
    let title = format!(
        "\n{} threads per core: {} programs, {} rows of {} co-runs\n",
        level.ways, level.programs, level.rows, level.co_runs
    );
    let components = level_rows(level, &outcome.model.components);
    let worst = &level.worst[..SHOWN.min(level.worst.len())];
    [
        title,
        output::table(COMPONENTS, &components),
        "\n".to_owned(),
        output::table(ERRORS, &errors(level)),
        "\n".to_owned(),
        bars(
            "forward error, programs held out",
            &level.held_out.forward.histogram,
        ),
        "\n".to_owned(),
        inverse_bars(level),
        output::table(WORST, worst),
        "\n".to_owned(),
        level.shares.as_ref().map_or_else(String::new, shares_text),
    ]
    .concat()
}

fn inverse_bars(level: &TrainedLevel) -> String {
    let errors = &level.held_out.inverse;
    let bars = || bars("inverse error, programs held out", &errors.histogram) + "\n";
    (errors.count > 0).then(bars).unwrap_or_default()
}

/// One side of [`SlowdownShares`].
struct SharesRow {
    of: &'static str,
    shares: EffectShares,
}

const SHARES: &[OutputColumn<SharesRow>] = &[
    text("variance of slowdowns", |r| r.of.to_owned()),
    number("victim %", |r| percent(r.shares.rows, 1)),
    number("co-runner %", |r| percent(r.shares.columns, 1)),
    number("interaction %", |r| percent(r.shares.interaction, 1)),
];

fn shares_text(both: &SlowdownShares) -> String {
    let row = |of, shares| SharesRow { of, shares };
    let rows = [row("measured", both.measured), row("model", both.predicted)];
    let explained = or_dash(both.interaction_r2, |r2| format!("{r2:.2}"));
    format!(
        "{}R2 of the interaction, which decides about pairs: {explained}\n\n",
        output::table(SHARES, &rows)
    )
}

/// Errors of each kind; none of the inverse model if it was not tested.
fn errors(level: &TrainedLevel) -> Vec<ErrorRow> {
    let row = |kind, spread: &ErrorSpread| ErrorRow {
        kind,
        size: spread.size,
        count: spread.count,
    };
    let all = [
        row("forward", &level.seen.forward),
        row("inverse", &level.seen.inverse),
        row("forward, programs held out", &level.held_out.forward),
        row("inverse, programs held out", &level.held_out.inverse),
    ];
    all.into_iter().filter(|row| row.count > 0).collect()
}

/// The JSON document of `consort train`. Keys are a contract: add, never rename. Keys next to `levels`
/// are those of the first level.
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
    components: Vec<ComponentRow>,
    forward_error: ErrorDocument,
    inverse_error: ErrorDocument,
    held_out_error: ErrorDocument,
    held_out_inverse_error: ErrorDocument,
    /// Share of the co-runs for which the inverse model kept a guess.
    guesses_kept: f64,
    worst_programs: &'a [WorstProgram],
    /// Null unless the rows are of pairs.
    variance: Option<VarianceDocument>,
}

/// Shares of the variance of slowdowns, 0 to 1.
#[derive(Serialize)]
struct VarianceDocument {
    measured: EffectDocument,
    model: EffectDocument,
    interaction_r2: Option<f64>,
}

#[derive(Serialize)]
struct EffectDocument {
    victim: f64,
    co_runner: f64,
    interaction: f64,
}

impl From<SlowdownShares> for VarianceDocument {
    fn from(both: SlowdownShares) -> Self {
        let effects = |shares: EffectShares| EffectDocument {
            victim: shares.rows,
            co_runner: shares.columns,
            interaction: shares.interaction,
        };
        Self {
            measured: effects(both.measured),
            model: effects(both.predicted),
            interaction_r2: both.interaction_r2,
        }
    }
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
            model_file: own_output(&args.out).map(|path| path.display().to_string()),
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
            components: level_rows(level, names),
            forward_error: ErrorDocument::from_spread(&level.seen.forward),
            inverse_error: ErrorDocument::from_spread(&level.seen.inverse),
            held_out_error: ErrorDocument::from_spread(&level.held_out.forward),
            held_out_inverse_error: ErrorDocument::from_spread(&level.held_out.inverse),
            guesses_kept: level.seen.guesses_kept as f64 / level.seen.inverted.max(1) as f64,
            worst_programs: &level.worst,
            variance: level.shares.map(VarianceDocument::from),
        }
    }
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

/// Width of the longest bar.
const WIDTH: f64 = 40.0;

/// One line per bin, from the first to the last that is not empty.
fn bars(title: &str, histogram: &ErrorHistogram) -> String {
    let bins: Vec<(f64, f64, u64)> = histogram.bins().collect();
    let most = bins.iter().map(|bin| bin.2).max().unwrap_or(0);
    let total: u64 = bins.iter().map(|bin| bin.2).sum();
    let first = bins.iter().position(|bin| bin.2 > 0).unwrap_or(0);
    let last = bins.iter().rposition(|bin| bin.2 > 0).unwrap_or(0);
    let lines = bins[first..=last].iter().map(|&(low, high, count)| {
        let length = WIDTH * count as f64 / most.max(1) as f64;
        let share = 100.0 * count as f64 / total.max(1) as f64;
        let bar = "#".repeat(length.ceil() as usize);
        let label = match (low.is_infinite(), high.is_infinite()) {
            (true, _) => format!("below {high:.0}%"),
            (_, true) => format!("{low:.0}% and more"),
            _ => format!("{low:.0} to {high:.0}%"),
        };
        format!("{label:>15} {share:>5.1}% {bar}\n")
    });
    std::iter::once(format!("{title}\n")).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_follow_their_bins() {
        let text = bars(
            "error",
            &ErrorHistogram::from_percents(&[-3.0, 1.0, 1.5, 99.0]),
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "error");
        let bar = "#".repeat(40);
        assert_eq!(
            lines[1],
            format!("{:>15}  25.0% {}", "-4 to -2%", &bar[..20])
        );
        assert_eq!(lines[3], format!("{:>15}  50.0% {bar}", "0 to 2%"));
        assert!(lines.last().unwrap().contains("30% and more"));
        assert_eq!(
            bars("none", &ErrorHistogram::from_percents(&[]))
                .lines()
                .count(),
            2
        );
    }
}
