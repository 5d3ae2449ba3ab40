//! The result of `consort train` for people.

use super::histogram::bars;
use super::outcome::{TrainedLevel, TrainedModel};
use super::worst_programs::WorstProgram;
use crate::cli::{self, TrainArgs};
use crate::output::{self, OutputColumn, number, text};
use consort_core::model::Deviation;
use consort_data::Table;
use consort_data::long::{LongRows, RowOwner};
use consort_experiment::train::ErrorSpread;

/// Programs in the list of those that are predicted worst.
const SHOWN: usize = 5;

/// One component at one number of threads per core.
pub(super) struct ComponentRow {
    ways: u32,
    name: String,
    alpha: f64,
    beta: f64,
    gamma: f64,
    delta: f64,
    r2: Option<f64>,
    held_out_r2: Option<f64>,
}

/// One kind of error.
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
    number("R2", |r| share(r.r2)),
    number("held out", |r| share(r.held_out_r2)),
];

const ERRORS: &[OutputColumn<ErrorRow>] = &[
    text("error", |r| r.kind.to_owned()),
    number("mean %", |r| percent(r.size.mean_absolute_percent)),
    number("p95 %", |r| percent(r.size.p95_percent)),
    number("values", |r| r.count.to_string()),
];

const WORST: &[OutputColumn<WorstProgram>] = &[
    text("predicted worst", |w| w.program.clone()),
    number("slowdown", |w| format!("{:.3}", w.slowdown)),
    number("predicted", |w| format!("{:.3}", w.predicted)),
    number("mean error %", |w| percent(100.0 * w.mean_abs)),
    text("mostly in", |w| w.component.clone()),
    number("off by (ST cycles)", |w| format!("{:.3}", w.residual)),
];

fn percent(value: f64) -> String {
    format!("{value:.2}")
}

fn share(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{v:.3}"))
}

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
            let of = row_subject(&case, args.seed);
            rows.push(of, "alpha", row.alpha, None);
            rows.push(of, "beta", row.beta, None);
            rows.push(of, "gamma", row.gamma, None);
            rows.push(of, "delta", row.delta, None);
            rows.push_if_some(of, "r2", row.r2, None);
            rows.push_if_some(of, "held_out_r2", row.held_out_r2, None);
        }
        for error in errors(level) {
            let size = error.size;
            let mean = size.mean_absolute_percent;
            let of = row_subject(&name, args.seed);
            rows.push(of, &format!("{}_mean", error.kind), mean, Some("%"));
            rows.push(
                of,
                &format!("{}_p95", error.kind),
                size.p95_percent,
                Some("%"),
            );
        }
    }
    rows.table()
}

fn row_subject(case: &str, seed: u64) -> RowOwner<'_> {
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

/// Everything, level by level.
pub(super) fn report(args: &TrainArgs, outcome: &TrainedModel) -> String {
    let model = &outcome.model;
    let levels = outcome.levels.iter();
    let levels: String = levels.map(|level| level_text(level, outcome)).collect();
    let notes = outcome.notes.iter().map(|note| format!("note: {note}\n"));
    let file = match cli::own_output(&args.out) {
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
        bars(
            "inverse error, programs held out",
            &level.held_out.inverse.histogram,
        ),
        "\n".to_owned(),
        output::table(WORST, worst),
        "\n".to_owned(),
    ]
    .concat()
}

fn errors(level: &TrainedLevel) -> Vec<ErrorRow> {
    let row = |kind, spread: &ErrorSpread| ErrorRow {
        kind,
        size: spread.size,
        count: spread.count,
    };
    vec![
        row("forward", &level.seen.forward),
        row("inverse", &level.seen.inverse),
        row("forward, programs held out", &level.held_out.forward),
        row("inverse, programs held out", &level.held_out.inverse),
    ]
}
