//! H6: less energy and energy-delay than the gang.
//!
//! Keys. Table `headline`: rows `POLICY over gang, WHAT, WHICH`. Table `reduction`: rows are schedulers with their options; columns `energy_coscheduled`,
//! `energy_suite`, `ed_coscheduled`, `ed_suite`: 1 less the mean over programs of what is relative
//! to the gang, per unit of work; below 0 is a loss. Table `programs`: rows are programs, columns
//! `ed_1` to `ed_7` (the schedulers by name in the titles): energy-delay over the gang's. Figures
//! `energy`, `energy-delay`.

use super::coscheduling::entrants::{BOUND, ENTRANTS, MAIN, SOURCES};
use super::coscheduling::figures::Chart;
use super::coscheduling::grid::Grid;
use super::coscheduling::views::{Over, Value, energy, energy_delay, name};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::Interval;
use consort_experiment::Context;
use consort_report::{Cell, Column, Figure, Headline, Table};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, _: &StudyFile) -> Result<StudyOutput, StudyError> {
    let grid = Grid::of(context)?;
    let charts = [
        (
            "energy",
            "Reduction of energy over the gang",
            energy as Value,
        ),
        (
            "energy-delay",
            "Reduction of energy-delay over the gang",
            energy_delay,
        ),
    ];
    let figures = charts.map(|(key, title, value)| figure(&grid, key, title, value));
    Ok(StudyOutput {
        tables: vec![headline(&grid)?, reduction(&grid)?, programs(&grid)?],
        figures: figures.into_iter().collect::<Result<_, _>>()?,
        notes: notes(&grid),
        runs: grid.runs(),
    })
}

/// Quantities that are reduced, in the source's words.
const REDUCED: [(&str, Value); 2] = [("energy", energy), ("energy-delay", energy_delay)];

fn headline(grid: &Grid) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    let groups = [
        ("co-scheduled programs", Over::Sharing),
        ("whole suite", Over::All),
    ];
    for (what, value) in REDUCED {
        for (group, which) in groups {
            for entrant in SOURCES.chain([BOUND]) {
                let row = format!("{} over gang, reduction of {what}, {group}", name(entrant));
                headline.add(
                    &row,
                    "percent",
                    percent(grid.reduction(entrant, which, value)),
                )?;
            }
        }
    }
    Ok(headline.into_table())
}

/// A share as a percentage.
fn percent(share: Cell) -> Cell {
    match share {
        Cell::Interval(interval) => Cell::Interval(Interval {
            mean: 100.0 * interval.mean,
            ci95: interval.ci95.map(|half| 100.0 * half),
            ..interval
        }),
        other => other,
    }
}

fn reduction(grid: &Grid) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("energy_coscheduled", "Energy, programs that share"),
        Column::plain("energy_suite", "Energy, whole suite"),
        Column::plain("ed_coscheduled", "Energy-delay, programs that share"),
        Column::plain("ed_suite", "Energy-delay, whole suite"),
    ];
    let title = "Reduction over the gang per unit of work, mean over programs";
    let mut table = Table::new("reduction", title, columns)?;
    for (entrant, who) in ENTRANTS.iter().enumerate() {
        let of = |which, value| grid.reduction(entrant, which, value);
        let cells = vec![
            of(Over::Sharing, energy),
            of(Over::All, energy),
            of(Over::Sharing, energy_delay),
            of(Over::All, energy_delay),
        ];
        table.push(who.name, cells)?;
    }
    Ok(table)
}

fn programs(grid: &Grid) -> Result<Table, StudyError> {
    let column =
        |entrant: usize| Column::plain(&format!("ed_{entrant}"), ENTRANTS[entrant].short());
    let title = "Energy-delay of each program over the gang's";
    let mut table = Table::new("programs", title, MAIN.map(column).collect())?;
    for id in grid.suite().ids() {
        let cells = MAIN.map(|entrant| grid.ratio(entrant, id, energy_delay));
        table.push(grid.suite().name(id).unwrap_or("?"), cells.collect())?;
    }
    Ok(table)
}

fn figure(grid: &Grid, key: &str, title: &str, value: Value) -> Result<Figure, StudyError> {
    let chart = Chart {
        key,
        title,
        text: "Mean over programs per unit of work; below 0 the gang takes less.",
        value: "Reduction",
        unit: None,
        baseline: 0.0,
    };
    let which = [Over::Sharing, Over::All];
    let groups = ["programs that share", "whole suite"];
    chart.by_group(grid, &groups, |entrant, group| {
        grid.reduction(entrant, which[group], value)
    })
}

fn notes(grid: &Grid) -> Vec<String> {
    let of = |value: Value| {
        let each = MAIN.map(|entrant| {
            let cell = grid.reduction(entrant, Over::All, value).text();
            format!("{} {cell}", name(entrant))
        });
        each.collect::<Vec<_>>().join(", ")
    };
    vec![
        format!("Reduction of energy for the whole suite: {}.", of(energy)),
        format!("Reduction of energy-delay: {}.", of(energy_delay)),
        "164 W of the machine's are drawn whoever runs, and a slot of several shares them: that is \
         where the energy is saved. Delay falls where programs use fewer cores better than \
         more."
            .to_owned(),
    ]
}
