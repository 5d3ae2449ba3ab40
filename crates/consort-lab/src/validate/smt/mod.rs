//! Slowdowns of programs on one SMT core, predicted by the fast engine, compared with measured ones.
//!
//! The measurements judge mechanisms of the contention model. No parameter is ever fitted to them.

mod judge;
mod predictions;

use super::check::{CheckTemplate, PublishedFigure, Tolerance};
use super::data::{ValidateError, data_error};
use super::{GroupInputs, GroupOutput, GroupResult};
use consort_core::stats::{EffectShares, mean};
use consort_data::{Cell, ReportColumn, ReportTable};
use consort_sim::program::{self, ProgramSpec};
use judge::{SlowdownTable, Verdict};
use predictions::Predictions;
use serde::Deserialize;
use std::sync::Arc;

pub(super) const NAME: &str = "smt";

/// The measured pairs.
const ROWS: &str = "smt2-tacle.csv";
/// The measured machine.
const MACHINE: &str = "xeon-silver-4110";
/// A co-runner that ends before its victims, so that rows next to it are partly alone.
const ENDS_EARLY: &str = "petrinet";
/// Pairs in the table of the worst ones.
const WORST: usize = 10;

const SLOWDOWN_ERROR: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "shosborn/SMART-ECRTS19 @ 398d581, MoonlightData6.xlsx: TACLeBench on a Xeon Silver 4110",
    unit: "% mean error",
    tolerance: Tolerance::absolute(0.0),
};

/// One measured pair.
#[derive(Debug, Deserialize)]
struct MeasuredPair {
    victim: String,
    corunner: String,
    slowdown: f64,
}

/// The programs of the measurement and their slowdowns.
struct Measurement {
    victims: Vec<Arc<ProgramSpec>>,
    co_runners: Vec<Arc<ProgramSpec>>,
    slowdowns: SlowdownTable,
}

impl Measurement {
    fn read(inputs: &GroupInputs<'_>) -> Result<Self, ValidateError> {
        let mut rows: Vec<MeasuredPair> = inputs.data.parse_rows(ROWS)?;
        rows.retain(|row| row.corunner != ENDS_EARLY);
        let sorted = |of: fn(&MeasuredPair) -> &String| {
            let mut names: Vec<&str> = rows.iter().map(|row| of(row).as_str()).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        let (victims, co_runners) = (sorted(|row| &row.victim), sorted(|row| &row.corunner));
        let mut slowdowns = SlowdownTable::new(&victims, &co_runners);
        for row in &rows {
            slowdowns.set(&row.victim, &row.corunner, row.slowdown);
        }
        if !slowdowns.is_complete() {
            return Err(data_error(
                ROWS,
                "a pair is missing; every victim runs next to every co-runner",
            ));
        }
        let program = |name: &&str| -> Result<Arc<ProgramSpec>, ValidateError> {
            let file = format!("tacle/{name}.toml");
            Ok(Arc::new(program::parse(&file, inputs.data.text(&file)?)?))
        };
        Ok(Self {
            victims: victims.iter().map(program).collect::<Result<_, _>>()?,
            co_runners: co_runners.iter().map(program).collect::<Result<_, _>>()?,
            slowdowns,
        })
    }
}

pub(super) fn run(inputs: &GroupInputs<'_>) -> GroupResult {
    let measured = Measurement::read(inputs)?;
    let predicted = Predictions::simulate(&measured, inputs)?;
    let truth = &measured.slowdowns;
    let methods = [
        ("fast engine", &predicted.slowdowns),
        ("constant", &truth.constant_baseline()),
        (
            "victim's own speed",
            &truth.speed_baseline(&predicted.victim_speeds),
        ),
        ("victim + co-runner", &truth.effects_baseline()),
    ];
    let verdicts = methods.map(|(name, slowdowns)| (name, truth.judge(slowdowns)));
    let fast = &verdicts[0].1;
    let pairs = truth.cells().count();
    let what = |figure: &str| format!("{figure}, {pairs} pairs of {} victims", truth.victims.len());
    let rank = CheckTemplate {
        unit: "Spearman's rho",
        ..SLOWDOWN_ERROR
    };
    let share = CheckTemplate {
        unit: "% of the attainable gain",
        ..SLOWDOWN_ERROR
    };
    let checks = vec![
        SLOWDOWN_ERROR.check(
            "slowdown-error",
            what("slowdown next to a co-runner"),
            PublishedFigure::AtMost(8.0),
            100.0 * fast.error,
        ),
        rank.check(
            "rank",
            what("order of co-runners by the harm that they do, mean over victims"),
            PublishedFigure::AtLeast(0.5),
            fast.rank.unwrap_or(0.0),
        ),
        share.check(
            "gain-share",
            "measured gain of the pairing that is best by the predictions".to_owned(),
            PublishedFigure::AtLeast(60.0),
            100.0 * fast.gain_share.unwrap_or(0.0),
        ),
    ];
    Ok(GroupOutput {
        checks,
        tables: vec![
            method_table(&verdicts)?,
            victim_table(&measured, &predicted)?,
            variance_table(&[("measured", truth), ("fast engine", &predicted.slowdowns)])?,
            pair_table(
                "smt-worst",
                "Pairs with the largest errors",
                truth,
                &predicted.slowdowns,
                WORST,
            )?,
            // Written to files; too long to print, so not under the group's name.
            pair_table(
                "pairs-smt",
                "All pairs",
                truth,
                &predicted.slowdowns,
                usize::MAX,
            )?,
        ],
        notes: vec![
            format!(
                "The aims are the project's own. Random pairings of the victims have a measured STP of \
                 {:.3} per pair, the best {:.3}. Baselines are fitted to the measurements, each without \
                 what it predicts: the victim, or the pair with \"victim + co-runner\".",
                fast.random_stp, fast.best_stp
            ),
            format!("Rows next to {ENDS_EARLY} are left out, because it ends early."),
        ],
        ..GroupOutput::default()
    })
}

fn method_table(verdicts: &[(&str, Verdict)]) -> Result<ReportTable, ValidateError> {
    let columns = vec![
        ReportColumn::plain("method", "method"),
        ReportColumn::with_unit("error", "mean error", "%"),
        ReportColumn::with_unit("bias", "bias", "%"),
        ReportColumn::plain("rank", "rank of co-runners"),
        ReportColumn::with_unit("gain_share", "share of the attainable gain", "%"),
    ];
    let mut table = ReportTable::new(
        "smt-methods",
        "Predictions against measured slowdowns",
        columns,
    )?;
    for (name, verdict) in verdicts {
        let cells = vec![
            (*name).into(),
            (100.0 * verdict.error).into(),
            (100.0 * verdict.bias).into(),
            number_or_none(verdict.rank),
            number_or_none(verdict.gain_share.map(|share| 100.0 * share)),
        ];
        table.push(&name.replace(' ', "-"), cells)?;
    }
    Ok(table)
}

fn victim_table(
    measured: &Measurement,
    predicted: &Predictions,
) -> Result<ReportTable, ValidateError> {
    let columns = vec![
        ReportColumn::plain("victim", "victim"),
        ReportColumn::plain("ipc", "IPC alone"),
        ReportColumn::plain("measured", "slowdown, measured"),
        ReportColumn::plain("predicted", "slowdown, predicted"),
        ReportColumn::with_unit("error", "mean error", "%"),
        ReportColumn::plain("rank", "rank of co-runners"),
    ];
    let mut table = ReportTable::new("smt-victims", "Victims, means over co-runners", columns)?;
    let truth = &measured.slowdowns;
    for (victim, name) in truth.victims.iter().enumerate() {
        let (row, ours) = (truth.row(victim), predicted.slowdowns.row(victim));
        let verdict = truth.judge_victim(&predicted.slowdowns, victim);
        let cells = vec![
            name.as_str().into(),
            predicted.victim_speeds[victim].into(),
            mean(row).unwrap_or(f64::NAN).into(),
            mean(ours).unwrap_or(f64::NAN).into(),
            (100.0 * verdict.0).into(),
            number_or_none(verdict.1),
        ];
        table.push(name, cells)?;
    }
    Ok(table)
}

fn variance_table(tables: &[(&str, &SlowdownTable)]) -> Result<ReportTable, ValidateError> {
    let columns = vec![
        ReportColumn::plain("of", "variance of slowdowns"),
        ReportColumn::with_unit("victim", "victim", "%"),
        ReportColumn::with_unit("corunner", "co-runner", "%"),
        ReportColumn::with_unit("interaction", "interaction", "%"),
    ];
    let mut table = ReportTable::new("smt-variance", "What slowdowns depend on", columns)?;
    for (name, slowdowns) in tables {
        let EffectShares {
            rows,
            columns,
            interaction,
        } = slowdowns.shares();
        let shares = [rows, columns, interaction].map(|share| (100.0 * share).into());
        let cells = std::iter::once((*name).into()).chain(shares).collect();
        table.push(&name.replace(' ', "-"), cells)?;
    }
    Ok(table)
}

/// The pairs with the largest errors first, at most `most`.
fn pair_table(
    key: &str,
    title: &str,
    truth: &SlowdownTable,
    ours: &SlowdownTable,
    most: usize,
) -> Result<ReportTable, ValidateError> {
    let columns = vec![
        ReportColumn::plain("victim", "victim"),
        ReportColumn::plain("corunner", "co-runner"),
        ReportColumn::plain("measured", "measured"),
        ReportColumn::plain("predicted", "predicted"),
        ReportColumn::with_unit("error", "error", "%"),
    ];
    let mut table = ReportTable::new(key, title, columns)?;
    let mut pairs: Vec<(usize, usize, f64)> = truth.cells().collect();
    let error =
        |&(victim, other, slowdown): &(usize, usize, f64)| ours.row(victim)[other] / slowdown - 1.0;
    pairs.sort_by(|a, b| error(b).abs().total_cmp(&error(a).abs()));
    for pair in pairs.iter().take(most) {
        let &(victim, other, slowdown) = pair;
        let names = (&truth.victims[victim], &truth.co_runners[other]);
        let cells = vec![
            names.0.as_str().into(),
            names.1.as_str().into(),
            slowdown.into(),
            ours.row(victim)[other].into(),
            (100.0 * error(pair)).into(),
        ];
        table.push(&format!("{}/{}", names.0, names.1), cells)?;
    }
    Ok(table)
}

fn number_or_none(number: Option<f64>) -> Cell {
    let none = || Cell::Missing {
        missing: "all are alike".to_owned(),
    };
    number.map_or_else(none, Cell::from)
}
