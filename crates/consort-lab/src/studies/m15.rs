//! M15: the policy `holistic`, online, against the best static mapping.
//!
//! Keys. Table `headline`: rows `holistic over WHAT, WHICH pairs` and `A+B, holistic over the best static
//! mapping`. AloneMeasures `pairs`: rows `A+B`; columns `holistic` (gain over os, percent), `best_mapping`,
//! `best` (its gain), `over_best` (holistic's speed over that of the best static mapping). Table
//! `summary`: rows `all` and `intensive`; columns `pairs`, `holistic`, `best`, `over_best`, `faster`
//! and `slower` (pairs in which it is faster and slower than the best static mapping by 5 percent or
//! more), `below_os` (slower than os by so much). Figure `holistic`.

use super::mapping::choice::{BEST, log_speed};
use super::mapping::plan::{ALONE_S, LINUX, ProgramNamePair, SEEDS};
use super::mapping::sweep::{PairRuns, PairTestbed};
use super::mapping::views::gain_cell;
use super::mapping::{part_error, sweep};
use crate::frame::mean_ratio_cell;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::geometric_mean;
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;
use consort_experiment::RepeatedProgram;
use consort_experiment::mapping::{NamedMapping, OS};
use libm::exp;

/// The policy.
const HOLISTIC: &str = "holistic";
/// Share from which on a difference counts.
const COUNTS: f64 = 0.05;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    let online = OnlineGains::new(context, &runs)?;
    Ok(runs.output(
        vec![
            online.headline()?,
            file.fill_table(
                "summary",
                online.groups().map(|(key, rows)| (key, summary_row(&rows))),
            )?,
            file.fill_table("pairs", online.rows.iter().map(PairGains::cells))?,
        ],
        vec![online.figure(file)?],
        vec![online.sentence()],
    ))
}

/// A pair's gains over os, factors by seed.
struct PairGains {
    pair: ProgramNamePair,
    best_mapping: &'static str,
    best: Vec<f64>,
    holistic: Vec<f64>,
}

/// Every pair under os, its best static mapping, and the policy.
struct OnlineGains {
    rows: Vec<PairGains>,
    intensive: Vec<ProgramNamePair>,
    seeds: usize,
}

impl OnlineGains {
    fn new(context: &ExperimentContext<'_>, runs: &PairRuns) -> Result<Self, StudyError> {
        let seeds = context.by_scale(SEEDS[0], SEEDS[1]);
        let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
        let field = PairTestbed::new(context, alone_s, seeds)?;
        let held = NamedMapping::from_policy(HOLISTIC, LINUX).map_err(part_error(HOLISTIC))?;
        let cases: Vec<(ProgramNamePair, NamedMapping)> = { runs.pairs.iter() }
            .map(|pair| (*pair, held.clone()))
            .collect();
        let done = field.run(context, &cases)?;
        let row = |(pair, done): (&ProgramNamePair, &[Vec<RepeatedProgram>])| PairGains {
            pair: *pair,
            best_mapping: runs.mostly(*pair, BEST).0,
            best: runs.chosen_gains(*pair, BEST),
            holistic: gains(runs.both(*pair, OS), done),
        };
        Ok(Self {
            rows: runs.pairs.iter().zip(done.chunks(seeds)).map(row).collect(),
            intensive: runs.intensive_pairs(),
            seeds,
        })
    }

    fn headline(&self) -> Result<ReportTable, StudyError> {
        let mut headline = HeadlineTable::new()?;
        for (group, rows) in self.groups() {
            let gain = |of: fn(&PairGains) -> Option<f64>| {
                let means: Vec<f64> = rows.iter().filter_map(|row| of(row)).collect();
                gain_cell(&means)
            };
            let row = |over: &str| format!("holistic over {over}, {group} pairs");
            headline.add(&row("os"), "percent", gain(PairGains::mean_gain))?;
            let best = row("the best static mapping");
            headline.add(&best, "percent", gain(PairGains::mean_over_best))?;
        }
        for row in &self.rows {
            let key = format!(
                "{}, holistic over the best static mapping",
                row.pair.join("+")
            );
            headline.add(&key, "percent", gain_cell(&row.over_best()))?;
        }
        Ok(headline.into_table())
    }

    fn groups(&self) -> [(&'static str, Vec<&PairGains>); 2] {
        let intensive = |row: &&PairGains| self.intensive.contains(&row.pair);
        [
            ("all", self.rows.iter().collect()),
            ("intensive", self.rows.iter().filter(intensive).collect()),
        ]
    }

    fn figure(&self, file: &StudyFile) -> Result<Figure, StudyError> {
        let cells =
            |of: fn(&PairGains) -> &[f64]| self.rows.iter().map(|row| gain_cell(of(row))).collect();
        let series = [
            (HOLISTIC.to_owned(), cells(|row| &row.holistic)),
            ("best static mapping".to_owned(), cells(|row| &row.best)),
        ];
        let names = self.rows.iter().map(|row| row.pair.join("+")).collect();
        file.bar_figure("holistic", self.seeds, names, series)
    }

    fn sentence(&self) -> String {
        let over = |row: &PairGains| Some((row.mean_over_best()?, row.pair.join("+")));
        let mut sorted: Vec<(f64, String)> = self.rows.iter().filter_map(over).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let words = |some: &[(f64, String)]| {
            let one = |(over, pair): &(f64, String)| format!("{pair} {over:.3}");
            some.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let ends = sorted.len().min(3);
        format!(
            "Speed of holistic over the best static mapping: least {}; most {}.",
            words(&sorted[..ends]),
            words(&sorted[sorted.len() - ends..]),
        )
    }
}

impl PairGains {
    /// Row of the table of pairs.
    fn cells(&self) -> (String, Vec<Cell>) {
        let cells = vec![
            gain_cell(&self.holistic),
            self.best_mapping.into(),
            gain_cell(&self.best),
            mean_ratio_cell(&self.over_best()),
        ];
        (self.pair.join("+"), cells)
    }

    /// The policy's speed over that of the best static mapping, seed by seed.
    fn over_best(&self) -> Vec<f64> {
        let both = self.holistic.iter().zip(&self.best);
        both.map(|(ours, best)| ours / best).collect()
    }

    fn mean_over_best(&self) -> Option<f64> {
        geometric_mean(&self.over_best())
    }

    fn mean_gain(&self) -> Option<f64> {
        geometric_mean(&self.holistic)
    }
}

fn summary_row(rows: &[&PairGains]) -> Vec<Cell> {
    let means = |of: fn(&PairGains) -> Option<f64>| -> Vec<f64> {
        rows.iter().filter_map(|row| of(row)).collect()
    };
    let (over, gain) = (
        means(PairGains::mean_over_best),
        means(PairGains::mean_gain),
    );
    let best = means(|row| geometric_mean(&row.best));
    let count =
        |of: &[f64], is: fn(&&f64) -> bool| Cell::Count(of.iter().filter(is).count() as u64);
    vec![
        Cell::Count(rows.len() as u64),
        gain_cell(&gain),
        gain_cell(&best),
        gain_cell(&over),
        count(&over, |v| **v >= 1.0 + COUNTS),
        count(&over, |v| **v <= 1.0 - COUNTS),
        count(&gain, |v| **v <= 1.0 - COUNTS),
    ]
}

/// Speeds of pairs in some runs over those in others, seed by seed.
fn gains(over: &[Vec<RepeatedProgram>], runs: &[Vec<RepeatedProgram>]) -> Vec<f64> {
    let both = runs.iter().zip(over);
    both.map(|(run, over)| exp(log_speed(run, over))).collect()
}
