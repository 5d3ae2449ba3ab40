//! S5: unfairness under each policy, from the runs of S4.
//!
//! Keys. Table `headline`: rows `unfairness of POLICY, CORES cores`. Table `cores`: rows `CORES/POLICY` and `all/POLICY`; columns `unfairness`,
//! `unfairness_over_random`, `unfairness_over_linux`, `antt`, `largest_slowdown`,
//! `smallest_slowdown` (means over workloads of means over runs; ratios geometric). Table
//! `programs`: rows `PROGRAM`; a column of mean slowdowns for each policy. Figures `cores` and
//! `programs`.

use super::symbiosis::cells::{bar, known};
use super::symbiosis::grid::{
    Grid, L1_BANDWIDTH, LINUX, Outcome, POLICIES, RANDOM, SYMBIOTIC, Value,
};
use super::symbiosis::headline::{self, Unit};
use super::symbiosis::{PROGRAMS, SEED, SOURCE};
use crate::context::Context;
use crate::report::{Axis, BarSeries, Bars, Column, Figure, Plot, Table};
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};
use consort_core::stats::mean;

/// The study.
pub(super) struct S5;

static INFO: StudyInfo = StudyInfo {
    id: "S5",
    title: "Unfairness of 105 workloads on 4 to 10 cores of a POWER8",
    source: SOURCE,
    section: "fairness (section number not checked)",
    original: "The runs of its throughput study (see S4): largest over smallest slowdown of the \
               programs of a workload, by number of cores.",
    differs: "The runs are those of S4 with what S4 does otherwise; with the same seed they are \
              run once for both.",
    default_seed: SEED,
    full_seconds_hint: 600,
};

const UNFAIRNESS: Value = |outcome| outcome.unfairness;

impl Study for S5 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        let grid = Grid::of(context)?;
        let slowdowns = slowdowns(&grid);
        Ok(StudyOutput {
            tables: vec![headline(&grid)?, by_cores(&grid)?, by_program(&slowdowns)?],
            figures: vec![cores_figure(&grid)?, programs_figure(&grid, &slowdowns)?],
            notes: notes(&grid, &slowdowns),
            runs: grid.runs,
        })
    }
}

fn headline(grid: &Grid) -> Result<Table, StudyError> {
    let policies = [RANDOM, LINUX, L1_BANDWIDTH, SYMBIOTIC];
    let name = |policy: &str| format!("unfairness of {policy}");
    headline::by_cores(grid, &policies, name, Unit::Ratio, |group, policy| {
        grid.mean_of(group, policy, UNFAIRNESS)
    })
}

fn by_cores(grid: &Grid) -> Result<Table, StudyError> {
    let title = "Unfairness by number of cores: over workloads, with intervals over workloads";
    let columns = vec![
        Column::plain("unfairness", "Unfairness"),
        Column::plain("unfairness_over_random", "Unfairness over random"),
        Column::plain("unfairness_over_linux", "Unfairness over linux"),
        Column::plain("antt", "ANTT"),
        Column::plain("largest_slowdown", "Largest slowdown"),
        Column::plain("smallest_slowdown", "Smallest slowdown"),
    ];
    let mut table = Table::new("cores", title, columns)?;
    for (key, group) in grid.groups() {
        for (policy, name) in POLICIES.iter().enumerate() {
            let mean = |value: Value| grid.mean_of(&group, policy, value);
            let over = |base| grid.ratio_of(&group, policy, base, UNFAIRNESS);
            let cells = vec![
                mean(UNFAIRNESS),
                over(RANDOM),
                over(LINUX),
                mean(|o| o.antt),
                mean(largest),
                mean(smallest),
            ];
            table.push(&format!("{key}/{name}"), cells)?;
        }
    }
    Ok(table)
}

fn largest(outcome: &Outcome) -> f64 {
    outcome.slowdowns.iter().copied().fold(0.0, f64::max)
}

fn smallest(outcome: &Outcome) -> f64 {
    { outcome.slowdowns.iter() }
        .copied()
        .fold(f64::INFINITY, f64::min)
}

/// Mean slowdown of every program under every policy; none where it was not drawn.
fn slowdowns(grid: &Grid) -> Vec<Vec<Option<f64>>> {
    let of = |program: usize, policy: usize| {
        let mut all = Vec::new();
        for (index, mix) in grid.mixes.iter().enumerate() {
            let places = { mix.programs.iter() }
                .enumerate()
                .filter(|(_, p)| **p == program);
            for (place, _) in places {
                let runs = grid.outcomes(index, policy).iter();
                all.extend(runs.filter_map(|run| run.slowdowns.get(place)));
            }
        }
        mean(&all)
    };
    let policies = |program| {
        (0..POLICIES.len())
            .map(|policy| of(program, policy))
            .collect()
    };
    (0..PROGRAMS.len()).map(policies).collect()
}

fn by_program(slowdowns: &[Vec<Option<f64>>]) -> Result<Table, StudyError> {
    let columns = { POLICIES.iter() }
        .map(|name| Column::plain(name, name))
        .collect();
    let title = "Mean slowdown of each program, over all workloads that have it";
    let mut table = Table::new("programs", title, columns)?;
    for (name, policies) in PROGRAMS.iter().zip(slowdowns) {
        let cell = |value: &Option<f64>| known(*value, "not drawn");
        table.push(name, policies.iter().map(cell).collect())?;
    }
    Ok(table)
}

fn cores_figure(grid: &Grid) -> Result<Figure, StudyError> {
    let groups = grid.groups();
    let series = |(policy, name): (usize, &&str)| BarSeries {
        name: (*name).to_owned(),
        bars: { groups.iter() }
            .map(|(_, group)| bar(&grid.mean_of(group, policy, UNFAIRNESS)))
            .collect(),
    };
    let bars = Bars {
        category: "Cores".to_owned(),
        value: Axis::linear("Unfairness", None),
        baseline: 1.0,
        groups: groups.iter().map(|(key, _)| key.clone()).collect(),
        series: POLICIES.iter().enumerate().map(series).collect(),
    };
    let title = "Unfairness by number of cores";
    let text = "Largest over smallest slowdown; 1 is fair. Intervals are over workloads.";
    Ok(Figure::new(
        "cores",
        title,
        text,
        grid.runs,
        Plot::Bars(bars),
    )?)
}

fn programs_figure(grid: &Grid, slowdowns: &[Vec<Option<f64>>]) -> Result<Figure, StudyError> {
    let series = |(policy, name): (usize, &&str)| BarSeries {
        name: (*name).to_owned(),
        bars: { slowdowns.iter() }
            .map(|policies| bar(&known(policies[policy], "not drawn")))
            .collect(),
    };
    let bars = Bars {
        category: "Program".to_owned(),
        value: Axis::linear("Slowdown", None),
        baseline: 1.0,
        groups: PROGRAMS.map(str::to_owned).into(),
        series: POLICIES.iter().enumerate().map(series).collect(),
    };
    let title = "Mean slowdown of each program";
    Ok(Figure::new(
        "programs",
        title,
        "",
        grid.runs,
        Plot::Bars(bars),
    )?)
}

fn notes(grid: &Grid, slowdowns: &[Vec<Option<f64>>]) -> Vec<String> {
    let all: Vec<usize> = (0..grid.mixes.len()).collect();
    let of = |policy: usize| {
        let mean = |value| grid.mean_of(&all, policy, value).text();
        format!(
            "{} {} (slowdowns from {} to {})",
            POLICIES[policy],
            mean(UNFAIRNESS),
            mean(smallest),
            mean(largest)
        )
    };
    let each: Vec<String> = (0..POLICIES.len()).map(of).collect();
    let mut notes = vec![format!(
        "Unfairness over all workloads: {}.",
        each.join(", ")
    )];
    notes.extend([RANDOM, LINUX, SYMBIOTIC].map(|policy| extremes(slowdowns, policy)));
    notes
}

/// Who is slowed down most and least: the two ends that unfairness is made of.
fn extremes(slowdowns: &[Vec<Option<f64>>], policy: usize) -> String {
    let named = PROGRAMS.iter().zip(slowdowns);
    let mut known: Vec<(&str, f64)> = named
        .filter_map(|(name, of)| Some((*name, of[policy]?)))
        .collect();
    known.sort_by(|a, b| b.1.total_cmp(&a.1));
    let text = |some: &[(&str, f64)]| {
        let one = |(name, slowdown): &(&str, f64)| format!("{name} {slowdown:.2}");
        some.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let ends = known.len().min(3);
    format!(
        "Under {} the programs that are slowed down most on average are {}, and least {}.",
        POLICIES[policy],
        text(&known[..ends]),
        text(&known[known.len() - ends..]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Cell;
    use crate::study::Scale;
    use crate::testing::workers;

    #[test]
    fn unfairness_is_made_of_the_ends() {
        let context = Context::new(SEED, Scale::Quick, workers(2), &|_| ());
        let grid = Grid::of(&context).unwrap();
        for mix in 0..grid.mixes.len() {
            for outcome in grid.outcomes(mix, SYMBIOTIC) {
                let ends = largest(outcome) / smallest(outcome);
                assert!((outcome.unfairness - ends).abs() < 1e-12);
            }
        }
        let cell = |row: &str| -> Option<Cell> {
            by_cores(&grid)
                .unwrap()
                .cell(row, "unfairness_over_random")
                .cloned()
        };
        assert_eq!(cell("all/random").unwrap().value(), Some(1.0));
    }
}
