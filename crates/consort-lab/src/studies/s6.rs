//! S6: throughput with the time that deciding takes left out and taken in, from the runs of S4.
//!
//! Keys. Table `headline`: rows `symbiotic over random, overhead excluded` and `..., overhead
//! included`, the latter with 1 ms of every quantum charged. Table `limits`: rows `CORES/POLICY` and `all/POLICY`; columns `stp_over_linux` (deciding
//! takes no time), `break_even_us` (the decision time per quantum at which nothing is left of the
//! gain over linux), and `stp_over_linux_at_100_us`, `..._at_1000_us`. Table `host-clock`, the same
//! rows: `decision_us`, `stp_over_linux_included`, which are measured on the host's clock and so
//! differ from run to run. Figure `host-clock`.

use super::symbiosis::cells::{bar, known};
use super::symbiosis::grid::{Grid, LINUX, ORACLE, POLICIES, RANDOM, SYMBIOTIC, Value};
use super::symbiosis::{QUANTUM, SEED, SOURCE};
use crate::context::Context;
use crate::report::{Axis, BarSeries, Bars, Cell, Column, Figure, Headline, Plot, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct S6;

static INFO: StudyInfo = StudyInfo {
    id: "S6",
    title: "What deciding costs on a POWER8",
    source: SOURCE,
    section: "overhead of the scheduler (section number not checked)",
    original: "The scheduler runs on the machine beside the programs; throughput with and without \
               the time that it takes.",
    differs: "The runs are those of S4. On the simulated machine deciding takes no time; its mean \
              time per quantum is charged as a lost share of every quantum, as though all programs \
              waited for it. It is measured on the clock of the host, which is not a POWER8, with other \
              runs beside it: the table and the figure with host-clock in their key are the one \
              part of the studies that is not the same on every host. The headline charges 1 ms of \
              every quantum instead, which is the same everywhere. What the operating system \
              does for linux is charged to nobody. The oracle is left out: its time is that of solving the \
              simulation's own equations for every pair, which no policy does.",
    default_seed: SEED,
    full_seconds_hint: 600,
};

/// Decision times that are charged without being measured, µs.
const CHARGED_US: [f64; 2] = [100.0, 1000.0];

const STP: Value = |outcome| outcome.stp;
const DECISION_US: Value = |outcome| outcome.decision_us;

impl Study for S6 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let grid = Grid::of(context)?;
        Ok(StudyOutput {
            tables: vec![headline(&grid)?, limits(&grid)?, host_clock(&grid)?],
            figures: vec![figure(&grid)?],
            notes: vec![note(&grid)],
            runs: grid.runs,
        })
    }
}

fn quantum_us() -> f64 {
    QUANTUM.as_nanos() as f64 / 1e3
}

/// What is left of a throughput when deciding takes this long in every quantum.
fn charged(stp: f64, decision_us: f64) -> f64 {
    stp * (1.0 - decision_us / quantum_us()).max(0.0)
}

/// The time per quantum that costs the whole gain; none without one.
fn break_even_us(ratio: f64) -> Option<f64> {
    (ratio > 1.0).then(|| (1.0 - 1.0 / ratio) * quantum_us())
}

fn over_linux(grid: &Grid, group: &[usize], policy: usize) -> Cell {
    grid.ratio_of(group, policy, LINUX, STP)
}

fn headline(grid: &Grid) -> Result<Table, StudyError> {
    let all: Vec<usize> = (0..grid.mixes.len()).collect();
    let over = |charged_us: f64| {
        grid.ratio_with(&all, SYMBIOTIC, RANDOM, |ours, random| {
            charged(ours.stp, charged_us) / random.stp
        })
    };
    let mut headline = Headline::new()?;
    headline.add_gain("symbiotic over random, overhead excluded", over(0.0))?;
    let included = over(CHARGED_US[1]);
    headline.add_gain("symbiotic over random, overhead included", included)?;
    Ok(headline.into_table())
}

fn limits(grid: &Grid) -> Result<Table, StudyError> {
    let title = "Throughput over linux, and how long deciding may take";
    let columns = vec![
        Column::plain("stp_over_linux", "STP over linux, deciding takes no time"),
        Column::with_unit("break_even_us", "Gain is lost at", "µs per quantum"),
        Column::plain("stp_over_linux_at_100_us", "STP over linux at 100 µs"),
        Column::plain("stp_over_linux_at_1000_us", "STP over linux at 1000 µs"),
    ];
    table("limits", title, columns, grid, |group, policy| {
        let excluded = over_linux(grid, group, policy);
        let ratio = excluded.value();
        let limit = known(ratio.and_then(break_even_us), "no gain over linux");
        let at = |us| {
            let left = |ratio| charged(ratio, charge_us(policy, us));
            known(ratio.map(left), "no runs")
        };
        vec![excluded, limit, at(CHARGED_US[0]), at(CHARGED_US[1])]
    })
}

fn host_clock(grid: &Grid) -> Result<Table, StudyError> {
    let title = "Measured on the host's clock: differs from run to run";
    let columns = vec![
        Column::with_unit("decision_us", "Time of a decision", "µs"),
        Column::plain(
            "stp_over_linux_included",
            "STP over linux, time of decisions charged",
        ),
    ];
    table("host-clock", title, columns, grid, |group, policy| {
        let time = grid.mean_of(group, policy, DECISION_US);
        vec![time, included(grid, group, policy)]
    })
}

/// Throughput over linux with decisions charged.
fn included(grid: &Grid, group: &[usize], policy: usize) -> Cell {
    grid.ratio_with(group, policy, LINUX, |ours, linux| {
        charged(ours.stp, charge_us(policy, ours.decision_us)) / linux.stp
    })
}

/// The policies that could decide on a machine, with their positions. The oracle's time would tell
/// how long the simulation takes to solve pairs.
fn deciding() -> impl Iterator<Item = (usize, &'static str)> {
    let all = POLICIES.iter().copied().enumerate();
    all.filter(|&(policy, _)| policy != ORACLE)
}

/// Nothing for linux, which decides in the kernel.
fn charge_us(policy: usize, decision_us: f64) -> f64 {
    if policy == LINUX { 0.0 } else { decision_us }
}

fn table(
    key: &str,
    title: &str,
    columns: Vec<Column>,
    grid: &Grid,
    cells: impl Fn(&[usize], usize) -> Vec<Cell>,
) -> Result<Table, StudyError> {
    let mut table = Table::new(key, title, columns)?;
    for (key, group) in grid.groups() {
        for (policy, name) in deciding() {
            table.push(&format!("{key}/{name}"), cells(&group, policy))?;
        }
    }
    Ok(table)
}

fn figure(grid: &Grid) -> Result<Figure, StudyError> {
    let groups = grid.groups();
    let series = |name: &str, of: &dyn Fn(&[usize]) -> Cell| BarSeries {
        name: name.to_owned(),
        bars: { groups.iter() }
            .map(|(_, group)| {
                Some(crate::report::Bar {
                    ci95: None,
                    ..bar(&of(group))?
                })
            })
            .collect(),
    };
    let bars = Bars {
        category: "Cores".to_owned(),
        value: Axis::linear("STP over linux", None),
        baseline: 1.0,
        groups: groups.iter().map(|(key, _)| key.clone()).collect(),
        series: vec![
            series("excluded", &|group| over_linux(grid, group, SYMBIOTIC)),
            series("included", &|group| included(grid, group, SYMBIOTIC)),
        ],
    };
    let title = "Throughput of symbiotic over linux, time of decisions excluded and included";
    let text = "The time of decisions is measured on the host's clock.";
    Ok(Figure::new(
        "host-clock",
        title,
        text,
        grid.runs,
        Plot::Bars(bars),
    )?)
}

fn note(grid: &Grid) -> String {
    let all: Vec<usize> = (0..grid.mixes.len()).collect();
    let ratio = over_linux(grid, &all, SYMBIOTIC);
    let limit = ratio.value().and_then(break_even_us);
    let limit = limit.map_or_else(
        || "there is no gain that deciding could cost".to_owned(),
        |us| format!("deciding may take {us:.0} µs of a quantum before nothing is left of it"),
    );
    format!(
        "Over all workloads symbiotic has {} times linux's throughput when deciding takes no time: \
         {limit}.",
        ratio.text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn at_break_even_nothing_is_left(ratio in 1.0001f64..3.0) {
            let us = break_even_us(ratio).unwrap();
            prop_assert!((charged(ratio, us) - 1.0).abs() < 1e-9);
            prop_assert!(charged(ratio, us / 2.0) > 1.0);
        }
    }

    #[test]
    fn without_a_gain_there_is_no_limit() {
        assert_eq!(break_even_us(1.0), None);
        assert_eq!(charged(2.0, 1e9), 0.0);
    }
}
