//! M15: the policy `holistic`, online, against the best static mapping.
//!
//! Keys. Table `pairs`: rows `A+B`; columns `holistic` (gain over os, percent), `best_mapping`,
//! `best` (its gain), `over_best` (holistic's speed over that of the best static mapping). Table
//! `summary`: rows `all` and `intensive`; columns `pairs`, `holistic`, `best`, `over_best`, `faster`
//! and `slower` (pairs in which it is faster and slower than the best static mapping by 5 percent or
//! more), `below_os` (slower than os by so much). Figure `holistic`.

use super::mapping::choice::{BEST, log_speed};
use super::mapping::gains::gain_cell;
use super::mapping::plan::{LINUX, Pair};
use super::mapping::sweep::{Field, Runs};
use super::mapping::views::{Draft, bars};
use super::mapping::{SEED, SOURCE, failed, notes, sweep};
use super::symbiosis::cells::ratios;
use crate::context::Context;
use crate::experiment::{ExperimentError, Repeated};
use crate::mapping::{Held, OS};
use crate::report::{Axis, Cell, Column, Figure, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use consort_core::policies;
use consort_core::stats::geometric_mean;
use libm::exp;

/// The study.
pub(super) struct M15;

static INFO: StudyInfo = StudyInfo {
    id: "M15",
    title: "holistic online against the best static mapping",
    source: SOURCE,
    section: "guidelines",
    original: "Guidelines for choosing a mapping from the characteristics of the programs; the \
               source does not run them online.",
    differs: "The policy holistic applies the guidelines online, from counters, and tries what they \
              cannot tell. Machine, programs and pairs are those of M14, but a program's work is \
              what it does alone in 1 s, so that there is time to learn in; what that costs is in \
              the result. The best static mapping is the one that is best on M14's runs, run here \
              with the longer work. The quick scale has 0.3 s and the seven pairs of M14's.",
    default_seed: SEED,
    full_seconds_hint: 75,
};

/// The policy.
const HOLISTIC: &str = "holistic";
/// Time of a program's work alone, s, at the two scales.
const ALONE_S: [f64; 2] = [0.3, 1.0];
/// Seeds at the two scales.
const SEEDS: [usize; 2] = [1, 3];
/// From when on a difference counts.
const COUNTS: f64 = 0.05;

impl Study for M15 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn mechanism(&self) -> &'static [&'static str] {
        &MECHANISM
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let runs = sweep::runs(context)?;
        let online = Online::new(context, &runs)?;
        let mut told = vec![online.sentence()];
        told.extend(notes::stopped(&runs));
        Ok(StudyOutput {
            tables: vec![online.summary()?, online.pairs()?],
            figures: online.figure()?.into_iter().collect(),
            notes: told,
            runs: online.seeds,
        })
    }
}

const MECHANISM: [&str; 2] = [
    "What holistic lacks against the best static mapping is above all what it pays for \
     finding it: it starts from nothing with each pair and tries the candidates in turn, the \
     bad ones as well, in a run that lasts a few seconds. Trials are bounded in time, so that \
     the gap shrinks as the work grows: at the quick scale, with less than a third of the \
     work, it is about twice as wide. It is widest where the mappings are furthest apart. \
     Where mappings differ by less than it can be sure of, it leaves everything to os, and is \
     then as fast but for the trials.",
    notes::TURNS,
];

/// A pair's gains over os, factors by seed.
struct Row {
    pair: Pair,
    best_mapping: &'static str,
    best: Vec<f64>,
    /// None where there is no such policy.
    holistic: Option<Vec<f64>>,
}

/// Every pair under os, its best static mapping, and the policy.
struct Online {
    rows: Vec<Row>,
    intensive: Vec<Pair>,
    seeds: usize,
}

impl Online {
    fn new(context: &Context<'_>, runs: &Runs) -> Result<Self, StudyError> {
        let seeds = context.by_scale(SEEDS[0], SEEDS[1]);
        let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
        let field = Field::new(context, alone_s, seeds)?;
        let entrants = { runs.pairs.iter() }
            .flat_map(|pair| {
                let best = runs.mostly(*pair, BEST).0;
                [Some(held(OS)), Some(held(best)), policy()]
                    .into_iter()
                    .flatten()
                    .map(|held| Ok((*pair, held?)))
            })
            .collect::<Result<Vec<(Pair, Held)>, ExperimentError>>();
        let entrants = entrants.map_err(failed(HOLISTIC))?;
        let done = field.run(context, &entrants)?;
        let each = entrants.len() / runs.pairs.len() * seeds;
        let pairs = runs.pairs.iter().zip(done.chunks(each));
        let row = |(pair, done): (&Pair, &[Vec<Repeated>])| Row {
            pair: *pair,
            best_mapping: runs.mostly(*pair, BEST).0,
            best: gains(&done[..seeds], &done[seeds..2 * seeds]),
            holistic: done
                .get(2 * seeds..)
                .filter(|runs| !runs.is_empty())
                .map(|runs| gains(&done[..seeds], runs)),
        };
        Ok(Self {
            rows: pairs.map(row).collect(),
            intensive: runs.intensive_pairs(),
            seeds,
        })
    }

    fn pairs(&self) -> Result<Table, StudyError> {
        let gain = |key: &str, title: &str| Column::with_unit(key, title, "% gain over os");
        let columns = vec![
            gain("holistic", "holistic"),
            Column::plain("best_mapping", "Best static mapping"),
            gain("best", "Best static mapping"),
            Column::plain("over_best", "Speed over the best static mapping"),
        ];
        let mut table = Table::new("pairs", "holistic and the best static mapping", columns)?;
        for row in &self.rows {
            let cells = vec![
                row.holistic.as_deref().map_or_else(absent, gain_cell),
                row.best_mapping.into(),
                gain_cell(&row.best),
                row.over_best().map_or_else(absent, |over| ratios(&over)),
            ];
            table.push(&row.pair.join("+"), cells)?;
        }
        Ok(table)
    }

    fn summary(&self) -> Result<Table, StudyError> {
        let gain = |key: &str, title: &str| Column::with_unit(key, title, "% gain over os");
        let columns = vec![
            Column::plain("pairs", "Pairs"),
            gain("holistic", "holistic"),
            gain("best", "Best static mapping"),
            Column::with_unit("over_best", "holistic over the best", "%"),
            Column::plain("faster", "Faster than the best"),
            Column::plain("slower", "Slower than the best"),
            Column::plain("below_os", "Slower than os"),
        ];
        let title = "Geometric means over pairs, and pairs that differ by 5 % or more";
        let mut table = Table::new("summary", title, columns)?;
        for (key, rows) in self.groups() {
            table.push(key, summary_row(&rows))?;
        }
        Ok(table)
    }

    fn groups(&self) -> [(&'static str, Vec<&Row>); 2] {
        let intensive = |row: &&Row| self.intensive.contains(&row.pair);
        [
            ("all", self.rows.iter().collect()),
            ("intensive", self.rows.iter().filter(intensive).collect()),
        ]
    }

    fn figure(&self) -> Result<Option<Figure>, StudyError> {
        let holistic: Option<Vec<Cell>> = { self.rows.iter() }
            .map(|row| row.holistic.as_deref().map(gain_cell))
            .collect();
        let Some(holistic) = holistic else {
            return Ok(None);
        };
        let best = self.rows.iter().map(|row| gain_cell(&row.best)).collect();
        let draft = Draft {
            key: "holistic",
            title: "Gain over os of holistic and of the best static mapping",
            text: "Geometric mean of a pair's speeds; below 0 is slower than os.",
            category: "Pair",
        };
        let names = self.rows.iter().map(|row| row.pair.join("+")).collect();
        let series = [
            (HOLISTIC.to_owned(), holistic),
            ("best static mapping".to_owned(), best),
        ];
        let axis = Axis::linear("Gain over os", Some("%"));
        bars(draft, self.seeds, (axis, 0.0), names, &series).map(Some)
    }

    fn sentence(&self) -> String {
        let Some(over) = self
            .rows
            .iter()
            .map(Row::mean_over_best)
            .collect::<Option<Vec<f64>>>()
        else {
            return format!("There is no policy '{HOLISTIC}' yet.");
        };
        let mut sorted: Vec<(f64, String)> = over
            .into_iter()
            .zip(self.rows.iter().map(|row| row.pair.join("+")))
            .collect();
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

impl Row {
    /// The policy's speed over that of the best static mapping, seed by seed.
    fn over_best(&self) -> Option<Vec<f64>> {
        let holistic = self.holistic.as_ref()?;
        Some(
            holistic
                .iter()
                .zip(&self.best)
                .map(|(ours, best)| ours / best)
                .collect(),
        )
    }

    fn mean_over_best(&self) -> Option<f64> {
        geometric_mean(&self.over_best()?)
    }

    fn mean_gain(&self) -> Option<f64> {
        geometric_mean(self.holistic.as_ref()?)
    }
}

fn summary_row(rows: &[&Row]) -> Vec<Cell> {
    let over: Option<Vec<f64>> = rows.iter().map(|row| row.mean_over_best()).collect();
    let gain: Option<Vec<f64>> = rows.iter().map(|row| row.mean_gain()).collect();
    let best: Vec<f64> = rows
        .iter()
        .filter_map(|row| geometric_mean(&row.best))
        .collect();
    let count = |of: &Option<Vec<f64>>, is: fn(f64) -> bool| match of {
        Some(values) => Cell::Count(values.iter().filter(|v| is(**v)).count() as u64),
        None => absent(),
    };
    let cell = |of: &Option<Vec<f64>>| of.as_deref().map_or_else(absent, gain_cell);
    vec![
        Cell::Count(rows.len() as u64),
        cell(&gain),
        gain_cell(&best),
        cell(&over),
        count(&over, |v| v >= 1.0 + COUNTS),
        count(&over, |v| v <= 1.0 - COUNTS),
        count(&gain, |v| v <= 1.0 - COUNTS),
    ]
}

fn absent() -> Cell {
    Cell::missing("there is no policy of that name yet")
}

/// A static mapping by its name.
fn held(mapping: &str) -> Result<Held, ExperimentError> {
    match mapping.parse() {
        Ok(scheme) => Held::scheme(scheme, LINUX),
        Err(_) => Held::os(LINUX),
    }
}

/// The policy, if there is one of that name.
fn policy() -> Option<Result<Held, ExperimentError>> {
    policies::find(HOLISTIC).ok()?;
    Some(Held::policy(HOLISTIC, LINUX))
}

/// Speeds of pairs in some runs over those in others, seed by seed.
fn gains(over: &[Vec<Repeated>], runs: &[Vec<Repeated>]) -> Vec<f64> {
    let both = runs.iter().zip(over);
    both.map(|(run, over)| exp(log_speed(run, over))).collect()
}
