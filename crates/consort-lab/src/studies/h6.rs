//! H6: less energy and energy-delay than the gang.
//!
//! Keys. Table `headline`: rows `POLICY over gang, WHAT, WHICH`. Table `reduction`: rows are schedulers with their options; columns `energy_coscheduled`,
//! `energy_suite`, `ed_coscheduled`, `ed_suite`: 1 less the mean over programs of what is relative
//! to the gang, per unit of work; below 0 is a loss. Table `programs`: rows are programs, columns
//! `ed_1` to `ed_7` (the schedulers by name in the titles): energy-delay over the gang's. Figures
//! `energy`, `energy-delay`.

use super::coscheduling::entrants::{BOUND, ENTRANTS, Entrant, MAIN, SOURCES};
use super::coscheduling::figures::GROUPS;
use super::coscheduling::grid::Grid;
use super::coscheduling::views::{Over, Value, energy, energy_delay, name};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_core::stats::Interval;
use consort_experiment::Context;
use consort_report::{Cell, Headline, Table};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, file: &StudyFile) -> Result<StudyOutput, StudyError> {
    let grid = Grid::of(context)?;
    let figures = REDUCED.map(|(key, value)| {
        grid.by_group((file, key), |entrant, over| {
            grid.reduction(entrant, over, value)
        })
    });
    let programs = grid.rows(&MAIN, |entrant, id| grid.ratio(entrant, id, energy_delay));
    Ok(StudyOutput {
        tables: vec![
            headline(&grid)?,
            reduction(file, &grid)?,
            file.table("programs", programs)?,
        ],
        figures: figures.into_iter().collect::<Result<_, _>>()?,
        notes: notes(&grid),
        runs: grid.runs(),
    })
}

/// Quantities that are reduced, in the source's words and as keys of figures.
const REDUCED: [(&str, Value); 2] = [("energy", energy), ("energy-delay", energy_delay)];

fn headline(grid: &Grid) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for (what, value) in REDUCED {
        for (group, _, which) in GROUPS {
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

fn reduction(file: &StudyFile, grid: &Grid) -> Result<Table, StudyError> {
    let row = |(entrant, who): (usize, &Entrant)| {
        let of = |which, value| grid.reduction(entrant, which, value);
        let cells = vec![
            of(Over::Sharing, energy),
            of(Over::All, energy),
            of(Over::Sharing, energy_delay),
            of(Over::All, energy_delay),
        ];
        (who.name, cells)
    };
    file.table("reduction", ENTRANTS.iter().enumerate().map(row))
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
